-- The last line of what wrk prints: its figures as JSON, exactly. Nothing here runs while requests do. CONNECTIONS is wrk's number of connections.

-- wrk adds latencies to those that it measured: of each that is twice the expected one or longer, one that is shorter by the expected one, by twice that,
-- and so on (coordinated omission). The longest have had none added to them, so that from there down all that was added can be taken away again.
local function measured(latency, expected)
    local counts, values = {}, {}
    for at = 1, #latency do
        local value, count = latency(at)
        values[at], counts[value] = value, count
    end
    for at = #values, 1, -1 do
        local count = counts[values[at]]
        if values[at] < 2 * expected then break end
        local shorter = values[at] - expected
        while count > 0 and shorter > expected do
            counts[shorter] = counts[shorter] - count
            shorter = shorter - expected
        end
    end
    local sum, number = 0, 0
    for value, count in pairs(counts) do
        sum, number = sum + value * count, number + count
    end
    return sum / math.max(number, 1), number
end

done = function(summary, latency, requests)
    local connections = tonumber(os.getenv('CONNECTIONS'))
    local each = math.floor(summary.requests / connections)
    local expected = each > 0 and math.floor(summary.duration / each) or math.huge
    local mean, number = measured(latency, expected)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    io.write(string.format(
        '\n{"requests":%d,"measured":%d,"seconds":%.6f,"mean_ms":%.4f,"printed_ms":%.4f,"p50_ms":%.3f,"p99_ms":%.3f,"failed":%d}\n',
        summary.requests, number, summary.duration / 1e6, mean / 1e3, latency.mean / 1e3,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, failed))
end
