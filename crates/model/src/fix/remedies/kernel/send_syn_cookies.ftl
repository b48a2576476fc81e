# What remedy send-syn-cookies does, and its risk.

remedy-send-syn-cookies-text = Answer a SYN that finds no room at { $listener } with a SYN cookie (tcp_syncookies 1 instead of 0): the connection needs no place in the queue until the client has answered.
remedy-send-syn-cookies-risk = Takes effect only while the queue is full. A connection that began with a cookie has no window scaling and no selective acknowledgements where the client sends no timestamps: slower over long paths, but there.
