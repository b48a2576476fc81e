# Upstream connection churn: explanation and evidence.

finding-upstream-connection-churn-explanation = Nothing is wrong: CPU time is the limit. But { $tier } opens a connection to { $remote } for each request, and part of the CPU time goes into opening, accepting and closing it. The requests themselves need so little CPU time that this matters. Kept connections save this time. They also occupy workers: keep far fewer connections than there are workers. The longer each is kept, the higher the throughput, but the longer other requests wait for a worker.
finding-upstream-connection-churn-explanation-wasted = CPU time is the limit, and part of it is wasted: { $tier } opens a connection to { $remote } for each request, which both sides then close. Kept connections save this time. They also occupy workers: keep far fewer connections than there are workers.

evidence-churn-share = Opening and closing these connections{ $tls ->
    [yes] , with their TLS handshakes,
   *[no] { "" }
} took { $share } % ({ $low } to { $high } %) of the CPU time that limits, at both ends together ({ $samples } samples).
evidence-churn-gain = Saving this work alone would raise throughput by { $gain } % ({ $low } to { $high } %). Fewer wake-ups would add to that.
evidence-churn-cpu = A request cost the servers { $us } µs of CPU time. A connection of its own takes up to { $connection } µs of that ({ $share } %).
