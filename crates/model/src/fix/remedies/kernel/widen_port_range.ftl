# What remedy widen-port-range does, and its risk.

remedy-widen-port-range-text = Use ports { $low } to { $high } for outgoing connections: { $sum } ports instead of { $from }.
remedy-widen-port-range-risk = A service that starts later on a port of the range may find it in use by an outgoing connection for a moment.
remedy-widen-port-range-risk-listeners = Services listen on ports of the range ({ $ports }). If one is restarted, an outgoing connection may hold its port for a moment; net.ipv4.ip_local_reserved_ports keeps such ports free.
