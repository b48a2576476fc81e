# Station upstream-connect: its states, findings and evidence, and what brings them about.

state-upstream-connect-each = { $tier } opens a connection to { $remote } for each request (opened a request: { $opened }).
state-upstream-connect-each-configured = { $tier } opens a connection to { $remote } for each request: so it is configured.
state-upstream-connect-kept = { $tier } keeps connections to { $remote } for further requests (opened a request: { $opened }).
state-upstream-connect-kept-configured = { $tier } keeps connections to { $remote } for further requests: so it is configured.
state-upstream-connect-race = { $met } requests of { $tier } met a kept connection that { $remote } was just closing.

finding-upstream-connection-churn-title = { $tier } opens a connection to { $remote } for each request
finding-upstream-connection-churn-explanation-far = Before each request { $tier } waits for a new connection to { $remote } to be established: a round trip there and back, in which nothing else happens. The cores are idle meanwhile; the clients wait. A connection that is kept needs it once.

evidence-churn-configured = { $kind }_pass to { $remote } without reuse: an upstream with keepalive, or what its protocol needs beside it, is not there.
evidence-churn-opened = Connections opened for each request: { $opened }.
evidence-churn-time = In { $share } % of a request's time it waited for its connection (connections in SYN-SENT, of all requests under way), and hardly a SYN was sent twice.

finding-idle-close-race-title = { $remote } closes kept connections at the moment when { $tier } sends a request on them
finding-idle-close-race-explanation = { $tier } keeps connections to { $remote } for further requests, and { $remote } closes those that were idle for a while. A request that is sent before the news of it arrives meets a closed socket: the answer is a reset, and the client gets a 502 wherever { $tier } may not ask again (a POST, or a proxy that is told not to). Nothing is overloaded, and more workers or longer queues change nothing.

evidence-race-failed = { $failed ->
    [one] One request was
   *[other] { $failed } requests were
} answered with 502, of { $met } that met a closed connection.
evidence-race-resets = { $netns } answered { $resets } segments with a reset: so it does where a request comes to a socket that was closed. A program that dies within a request has read it before.
evidence-race-kept = Up to { $kept } idle connections to { $remote } are kept by each worker.
