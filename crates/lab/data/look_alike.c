/* A program of an attacker that looks like a server. Compiled under the name of the server.
 *   serve ADDRESS:PORT LIMIT TITLE CHILD  a master that listens and a child that holds LIMIT connections and closes others, each with the title that it is given
 *   work ADDRESS:PORT LIMIT TITLE         that child alone
 *   pool ADDRESS:PORT LIMIT TITLE CHILD   the same, but others wait until a place is free
 *   title TITLE                           a process with this title
 *   long TITLE BYTES [ADDRESS:PORT]       the same, but its command line and its environment are as long as this; it listens there
 *   busy NAME                             a process of this name that uses a core, in functions of its own and in code without a file
 * For ADDRESS:PORT also fd:N, a listening socket that it was started with.
 * Executed in any other way it says so in the file "executed" beside it, and ends with the status in the file "status" beside it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PLACES 1024
static const char ANSWER[] = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nContent-Length: 3\r\n\r\nok\n";

static char *file_beside(const char *file) {
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, file);
    return path;
}

static int executed(int count, char **words) {
    FILE *file = fopen(file_beside("executed"), "a");
    if (file) {
        fprintf(file, "user %d, session %d:", (int)geteuid(), (int)getsid(0));
        for (int n = 0; n < count; n++) fprintf(file, " %s", words[n]);
        fprintf(file, "\n");
        fclose(file);
    }
    int status = 0;
    file = fopen(file_beside("status"), "r");
    if (file && fscanf(file, "%d", &status) != 1) status = 1;
    if (status) fprintf(stderr, "nginx: [emerg] no\nnginx: configuration file test failed\n");
    return status;
}

/* The title replaces the arguments where they are. */
static void set_title(char **words, int count, const char *title) {
    char copy[8192];
    snprintf(copy, sizeof copy, "%s", title);
    char *end = words[count - 1] + strlen(words[count - 1]);
    size_t room = end - words[0];
    memset(words[0], 0, room);
    strncpy(words[0], copy, room > 1 ? room - 1 : 0);
}

static void answer(int listener, int places, int others_wait) {
    static struct pollfd fds[PLACES + 1];
    int held = 0;
    for (;;) {
        fds[held].fd = listener;
        fds[held].events = POLLIN;
        int is_open = held < places || !others_wait;
        if (poll(fds, held + is_open, -1) < 0) continue;
        for (int n = 0; n < held; n++) {
            if (!fds[n].revents) continue;
            char request[65536];
            ssize_t length = read(fds[n].fd, request, sizeof request);
            if (length > 0 && write(fds[n].fd, ANSWER, sizeof ANSWER - 1) > 0) continue;
            close(fds[n].fd);
            fds[n--] = fds[--held];
            fds[held].revents = 0;
        }
        int client = is_open ? accept4(listener, 0, 0, SOCK_CLOEXEC) : -1;
        if (client >= 0 && held >= places) {
            close(client);
        } else if (client >= 0) {
            fds[held].fd = client;
            fds[held].events = POLLIN;
            fds[held++].revents = 0;
        }
    }
}

/* A socket at ADDRESS:PORT that does not listen yet. */
static int bound(char *address) {
    if (!strncmp(address, "fd:", 3)) {
        fcntl(atoi(address + 3), F_SETFL, O_NONBLOCK);
        return atoi(address + 3);
    }
    char *port = strrchr(address, ':');
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(port + 1))};
    *port = 0;
    at.sin_addr.s_addr = inet_addr(address);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at)) exit(1);
    return listener;
}

static int serve(char **words, int count) {
    int places = atoi(words[3]), listener = bound(words[2]);
    int others_wait = !strcmp(words[1], "pool");
    char *title = strdup(words[4]), *child = strdup(words[5]);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, 9);
        set_title(words, count, child);
        while (listen(listener, 511)) usleep(1000);
        answer(listener, places > PLACES ? PLACES : places, others_wait);
    }
    set_title(words, count, title);
    if (listen(listener, 511)) return 1;
    for (;;) pause();
}

/* prctl(2), PR_SET_MM_MAP: where the kernel looks for the command line and the environment. */
static int be_long(char **words) {
    if (words[4] && listen(bound(words[4]), 16)) return 1;
    size_t length = strtoull(words[3], 0, 10);
    struct prctl_mm_map map = {.exe_fd = -1};
    FILE *file = fopen("/proc/self/stat", "r");
    char line[4096];
    if (!file || !fgets(line, sizeof line, file)) return 1;
    char *rest = strrchr(line, ')') + 2;
    unsigned long long fields[52] = {0};
    for (int n = 3; n < 52 && rest; n++) {
        fields[n] = strtoull(rest, 0, 10);
        rest = strchr(rest, ' ');
        rest = rest ? rest + 1 : 0;
    }
    char *text = mmap(0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (text == MAP_FAILED) return 1;
    strcpy(text, words[2]);
    map.start_code = fields[26];
    map.end_code = fields[27];
    map.start_stack = fields[28];
    map.start_data = fields[45];
    map.end_data = fields[46];
    map.start_brk = fields[47];
    map.brk = (unsigned long)sbrk(0);
    map.arg_start = map.env_start = (unsigned long)text;
    map.arg_end = map.env_end = (unsigned long)text + length;
    if (prctl(PR_SET_MM, PR_SET_MM_MAP, (unsigned long)&map, sizeof map, 0)) {
        printf("this kernel has no PR_SET_MM_MAP (CONFIG_CHECKPOINT_RESTORE)\n");
        return 77;
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) pause();
}

static void __attribute__((noinline)) spin(void) { for (volatile long n = 0; n < 2000000; n++); }

/* Code in anonymous memory, as compilers at run time make it: a loop, and a return. */
static int be_busy(const char *name) {
#if defined(__x86_64__)
    static const unsigned char code[] = {0xb9, 0, 0, 0x40, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
#elif defined(__aarch64__)
    static const unsigned int code[] = {0x52a00800, 0x71000400, 0x54ffffe1, 0xd65f03c0};
#else
    printf("there is no code for this processor\n");
    return 77;
#endif
    unsigned char *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return 1;
    memcpy(made, code, sizeof code);
    __builtin___clear_cache((char *)made, (char *)made + sizeof code);
    prctl(PR_SET_NAME, name);
    printf("%lx\n", (unsigned long)made);
    fflush(stdout);
    for (;;) {
        ((void (*)(void))made)();
        spin();
    }
}

int main(int count, char **words) {
    if (count >= 6 && (!strcmp(words[1], "serve") || !strcmp(words[1], "pool"))) return serve(words, count);
    if (count >= 5 && !strcmp(words[1], "work")) {
        int places = atoi(words[3]), listener = bound(words[2]);
        set_title(words, count, strdup(words[4]));
        listen(listener, 511);
        answer(listener, places > PLACES ? PLACES : places, 0);
    }
    if (count >= 4 && !strcmp(words[1], "long")) return be_long(words);
    if (count >= 3 && !strcmp(words[1], "title")) {
        set_title(words, count, strdup(words[2]));
        printf("ready\n");
        fflush(stdout);
        for (;;) pause();
    }
    if (count >= 3 && !strcmp(words[1], "busy")) return be_busy(words[2]);
    return executed(count, words);
}
