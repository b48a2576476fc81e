# Upstream connection churn: explanation and evidence.

finding-upstream-connection-churn-explanation = Nothing is wrong, and the cores are the limit. But part of what they do is opening, accepting and closing a connection from { $tier } to { $remote } for each request, and these pages cost so little that this counts. Connections that are kept for some requests save it. They also hold workers: what is kept must stay well below their number, and for how long is a trade between throughput and the response time of those who wait.
finding-upstream-connection-churn-explanation-wasted = The cores are the limit, and part of their work could be left out: for each request { $tier } opens a connection to { $remote }, which accepts it, and both close it. Kept connections save this. They also hold workers: keep well below as many as there are workers.

evidence-churn-share = Opening and closing these connections took { $share } % ({ $low } to { $high } %) of the CPU time that limits, both ends together, by { $samples } samples.
evidence-churn-gain = Throughput would grow by { $gain } % ({ $low } to { $high } %) from this work alone; fewer wake-ups add to that.
evidence-churn-cpu = A request cost the servers { $us } µs of CPU; a connection of its own is up to { $connection } µs of that ({ $share } %).
