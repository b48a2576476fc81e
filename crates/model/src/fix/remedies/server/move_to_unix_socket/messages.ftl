# What remedy move-to-unix-socket does, its risk, and why it is not offered.

remedy-move-to-unix-socket-text = Let pool { $pool } listen on the unix socket { $path } instead of { $remote }, and { $tier } connect to it there. Opening a connection costs less than over TCP, takes no local port and holds no worker.
remedy-move-to-unix-socket-risk = Whatever else connects to { $remote } finds nobody there any more; nothing else was seen to. php-fpm is reloaded twice and nginx once. Meanwhile the pool runs a second time with its { $workers } workers, so that new requests always find a listener.
remedy-move-to-unix-socket-risk-words = Whatever else connects to { $remote } must move, too. Both programs must see the same directory (containers, chroot, PrivateTmp=), and SELinux or AppArmor must let them. If more connections come at once than listen() was asked to keep (and net.core.somaxconn allows), connecting fails at once.
remedy-move-to-unix-socket-words = Let the pool behind { $remote } listen on a unix socket (listen = /run/php/NAME.sock with listen.owner, listen.mode = 0660 and listen.backlog), and pass to it (fastcgi_pass unix:/run/php/NAME.sock): opening a connection costs less than over TCP, takes no local port and holds no worker. To be done by hand, because { $why }.
remedy-move-to-unix-socket-words-other = Let { $upstream } listen on a unix socket, and { $tier } connect to it there: opening a connection costs less than over TCP and takes no local port. For example gunicorn --bind unix:/run/app/NAME.sock, uvicorn --uds, uWSGI socket =, Puma bind "unix:///run/app/NAME.sock", Node.js server.listen("/run/app/NAME.sock"); nginx proxy_pass http://unix:/run/app/NAME.sock: (or server unix:... in its upstream), HAProxy server NAME /run/app/NAME.sock.
remedy-move-to-unix-socket-not-one-pool = it is not known which one pool answers there
remedy-move-to-unix-socket-reachable = others than this host can reach the address, and those who use it are not all known
remedy-move-to-unix-socket-file-system = it is not known that both servers see the same files
remedy-move-to-unix-socket-user = the user of nginx's workers is not known by name
remedy-move-to-unix-socket-other-client = another program, of user { $uid }, connects there as well
remedy-move-to-unix-socket-memory = there is not enough memory to run the pool a second time during the move
remedy-move-to-unix-socket-path = the name of the pool or of its directory does not fit into the path of a unix socket
remedy-move-to-unix-socket-files = a configuration could not be read
remedy-move-to-unix-socket-several-files = several files of a server must be changed at the same time
remedy-move-to-unix-socket-edit = its files cannot be edited ({ $why })
