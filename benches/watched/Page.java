// A page in Java, with a pool of threads. Usage: java Page.java PORT THREADS MILLISECONDS
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

class Page {
    public static void main(String[] words) throws Exception {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        long ms = Long.parseLong(words[2]);
        byte[] page = "x".repeat(500).getBytes();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 1024);
        server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(words[1])));
        server.createContext("/", exchange -> {
            try {
                Thread.sleep(ms);
            } catch (InterruptedException gone) {
                return;
            }
            exchange.sendResponseHeaders(200, page.length);
            exchange.getResponseBody().write(page);
            exchange.close();
        });
        server.start();
    }
}
