# What remedy end-lingering does, and its risk.

remedy-end-lingering-text = Let the clients of { $tier } close a connection as soon as they have the response, or put a server in front that does: nginx or HAProxy close at once and wait for slow clients without a worker. Where { $tier } is one of several kinds, choose the one that waits in an event loop (Apache: the event MPM instead of prefork).
remedy-end-lingering-risk = A server that closes without waiting may cut off the end of a response while the client still sends. A proxy in front adds a hop.
