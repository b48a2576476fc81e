// A server whose answers take a timer's time, or the core's: node answers.js PORT timer|work AMOUNT, milliseconds or rounds of a hash.
const crypto = require('node:crypto');
const http = require('node:http');

const [port, kind, amount] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];

const server = http.createServer((request, response) => {
    const answer = () => response.end('Hello\n');
    if (kind === 'timer') {
        setTimeout(answer, amount);
    } else {
        crypto.pbkdf2Sync('balance', 'salt', amount, 32, 'sha256');
        answer();
    }
});
server.keepAliveTimeout = 60000;
server.listen({ port, host: '0.0.0.0', backlog: 4096 });
