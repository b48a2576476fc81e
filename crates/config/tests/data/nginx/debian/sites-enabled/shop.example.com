upstream shop {
	least_conn;
	server 10.0.0.11:8080 weight=2 max_conns=200 max_fails=3 fail_timeout=5s;
	server 10.0.0.12:8080;
	server [2001:db8::12]:8080 backup;
	server unix:/run/shop.sock down;
	zone shop 64k;
	keepalive 32;
	keepalive_requests 500;
	keepalive_timeout 30s;
}

server {
	listen 80;
	listen [::]:80;
	server_name shop.example.com *.shop.example.com;
	access_log /var/log/nginx/shop.log combined buffer=32k flush=5s;

	location / {
		proxy_pass http://shop;
		proxy_http_version 1.1;
		proxy_set_header Connection "";
		proxy_set_header Host $host;
	}

	location /status { stub_status; allow 127.0.0.1; deny all; access_log off; }
}
