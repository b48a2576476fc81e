# What remedy send-syn-cookies does, and its risk.

remedy-send-syn-cookies-text = If the queue of { $listener } is full, answer a SYN with a SYN cookie (tcp_syncookies 1 instead of 0): the handshake then needs no place in the queue.
remedy-send-syn-cookies-risk = Cookies are used only while the queue is full. If the client sends no timestamps, a connection that started with a cookie has no window scaling and no selective acknowledgements: it is slower over long paths, but it is established.
