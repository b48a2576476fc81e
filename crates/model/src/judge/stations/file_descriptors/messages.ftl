# Station file-descriptors: its states, findings and evidence, and what brings them about.

short-file-descriptors = open files

state-file-descriptors-ok = Process { $pid } had at most { $peak } of { $limit } files open.
state-file-descriptors-near = Process { $pid } had at most { $peak } of { $limit } files open: almost at the limit.
state-file-descriptors-harmless = The server logged { $count } times that it could not open a file or socket; too few requests were affected to count as harm.
state-file-descriptors-logged = The server logged { $count } times that it could not open a file or socket; a process may open { $limit }.
state-file-descriptors-full = Process { $pid } stayed at its limit of { $limit } open files.

finding-file-descriptors-exhausted-title = { $tier } has no file descriptor left ({ $limit } for each process)
finding-file-descriptors-exhausted-explanation = Each connection, file and pipe of a process takes a descriptor, and a process of { $tier } may have { $limit }. When they are used up, accept() fails with "Too many open files" (EMFILE, 24) and connections wait in the accept queue (nginx then stops accepting for half a second). Or the server cannot open the upstream connection or the file for the response, and the client gets a 500.

evidence-file-descriptors-open = Process { $pid } had { $peak } of { $limit } descriptors open, and was at the limit in { $full } of { $samples } samples.
evidence-file-descriptors-waiting = On average { $waiting } connections waited to be accepted.
evidence-file-descriptors-waiting-left = On average { $waiting } connections waited to be accepted, more than the { $clients } clients of this load: those that a client has given up, or that others made, stand there, too.
evidence-file-descriptors-harm = { $failed } of { $requests } requests failed, and the p99 response time was { $p99 } ms.
