# Station load-generator: its states, findings and evidence, and what brings them about.

short-load-generator = load generator

state-generator-ok = The generator used { $share } % of its CPU.
state-generator-near = The generator used { $share } % of its CPU: almost at its limit.
state-generator-cpu = The generator used { $share } % of its CPU and was itself the limit.
state-generator-late = { $count } requests were sent late.
state-generator-local = { $count } requests failed because the generator ran out of ports, files or memory.

finding-load-generator-limited-title = the load generator was the limit
finding-load-generator-limited-unread = Most requests failed at once, and were asked again at once, which keeps the generator busy. Which processes serve { $tier } could not be read, so why they fail is not known.
finding-load-generator-limited-refused = Most requests failed at once, and were asked again at once, which keeps the generator busy. Whether the generator could send more shows only once they are answered.
finding-load-generator-limited-server = The busiest thread of the generator was busy { $share } % of the time, but { $waiting } of { $under_way } requests waited at servers whose cores or threads have no more time either. What a generator cannot keep up with waits at the client.
finding-load-generator-limited-explanation = The generator could not send more, so the result shows its own speed and not the server's. Give it more threads or cores, or run it on another host.

evidence-generator-cpu =
    { $threads ->
        [one] Its only thread
       *[other] The busiest of its { $threads } threads
    } used { $share } % of its CPU, soft interrupts included.
evidence-generator-late = { $count } of { $of } requests were sent late or not at all.
evidence-generator-local = The generator's own limits: { $ports } times no local port, { $files } times no file descriptor, { $memory } times no socket memory.

coupling-generator-asks-again = Most requests were refused at once, and a closed loop then sends the next one at once; that kept the generator's cores busy. If most requests succeeded, the generator's own limit would hide the server's.
