// Node's http. Usage: page.js PORT SECONDS
const [port, seconds] = process.argv.slice(2).map(Number);
require('node:http').createServer((_, answer) => setTimeout(() => answer.end('ok\n'), seconds * 1000)).listen(port, '127.0.0.1', 1024);
