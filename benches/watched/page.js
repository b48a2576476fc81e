// A page in Node.js. Usage: page.js PORT MODE MILLISECONDS [REDIS PORT]
const net = require('node:net');
const [port, ms, behind] = [process.argv[2], process.argv[4], process.argv[5]].map(Number);
const page = 'x'.repeat(500);
const modes = {
  timer: () => (done) => setTimeout(done, ms),
  compute: () => (done) => {
    for (const until = performance.now() + ms; performance.now() < until; );
    done();
  },
  // One connection to Redis, on which requests and answers keep their order; then a timer.
  redis: () => {
    const waiting = [];
    const redis = net.connect(behind, '127.0.0.1');
    redis.on('data', (answers) => {
      for (let left = answers.toString().split('\r\n').length - 1; left > 0; left--) waiting.shift()();
    });
    return (done) => {
      waiting.push(() => setTimeout(done, ms));
      redis.write('PING\r\n');
    };
  },
};
const work = modes[process.argv[3]]();
require('node:http').createServer((_, answer) => work(() => answer.end(page))).listen(port, '127.0.0.1', 1024);
