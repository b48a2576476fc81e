# What remedy widen-port-range does, and its risk.

remedy-widen-port-range-text = Use ports { $low } to { $high } for outgoing connections instead of { $from } ports.
remedy-widen-port-range-risk = A service that is started later on a port of the range can find it taken by an outgoing connection for a moment.
remedy-widen-port-range-risk-listeners = Services listen on ports of the range ({ $ports }): were one restarted, an outgoing connection could hold its port for a moment; net.ipv4.ip_local_reserved_ports keeps such ports free.
