# Station load-generator: its states, findings and evidence, and what brings them about.

state-generator-ok = The generator used { $share } % of its CPU.
state-generator-near = The generator used { $share } % of its CPU: little is left.
state-generator-cpu = The generator used { $share } % of its CPU and was itself the limit.
state-generator-late = { $count } requests were sent late although their time had come.
state-generator-local = { $count } requests failed for want of the generator's own ports, files or memory.

finding-load-generator-limited-title = the load generator was the limit
finding-load-generator-limited-explanation = The generator could not offer more, so what was measured is its own speed and not the server's. Give it more threads or cores, or another host.

evidence-generator-cpu = Its busiest thread used { $share } % of its CPU, soft interrupts included.
evidence-generator-late = { $count } of { $of } requests were sent late or not at all.
evidence-generator-local = Its own limits refused: { $ports } times no local port, { $files } times no file descriptor, { $memory } times no socket memory.

coupling-generator-asks-again = Most requests were turned away at once, and a closed loop sends the next one at once: that kept the generator's cores busy. With most requests answered well its own limit would hide the server's.
