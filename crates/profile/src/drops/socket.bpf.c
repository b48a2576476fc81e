//! Counts the packets that the kernel drops, by reason, location, socket and running program: skb:kfree_skb as a raw tracepoint. Fields are found by name
//! in the running kernel's types (CO-RE), so one object fits all kernels that give reasons (Linux 5.17 and later).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* Maximum number of kinds. Drops of further kinds count in `lost`. */
#define KINDS_MAX 16384
/* Maximum number of reasons that are left out. */
#define ORDINARY_MAX 16

/* Kernel constants that are not part of its types: linux/socket.h, linux/net.h, linux/if_ether.h, linux/in.h, net/tcp_states.h, linux/sched.h, linux/bpf.h. */
#define AF_INET 2
#define AF_INET6 10
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define SOCK_RAW 3
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define TCP_TIME_WAIT 6
#define TCP_NEW_SYN_RECV 12
#define PF_KTHREAD 0x00200000
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_ANY 0
#define BPF_NOEXIST 1
/* Asks __builtin_preserve_field_info whether a field exists. */
#define FIELD_EXISTS 2

/* bpf-helpers(7), by their numbers in linux/bpf.h. */
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*const current_task)(void) = (void *)35;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;

/* The fields that are read from the kernel's structures. Their offsets are those of the running kernel. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
    u32 inum;
};
struct net {
    struct ns_common ns;
};
typedef struct {
    struct net *net;
} possible_net_t;
struct in6_addr {
    u8 bytes_are_read_whole[0];
};
struct sock_common {
    u32 skc_daddr;
    u32 skc_rcv_saddr;
    u16 skc_dport;
    u16 skc_num;
    u16 skc_family;
    u8 skc_state;
    possible_net_t skc_net;
    struct in6_addr skc_v6_daddr;
    struct in6_addr skc_v6_rcv_saddr;
};
struct socket;
struct sock {
    struct sock_common __sk_common;
    struct socket *sk_socket;
    u16 sk_type;
    u16 sk_protocol;
};
struct socket {
    struct sock *sk;
};
struct inode {
    unsigned long i_ino;
};
struct socket_alloc {
    struct socket socket;
    struct inode vfs_inode;
};
struct net_device {
    possible_net_t nd_net;
};
struct sk_buff {
    struct sock *sk;
    struct net_device *dev;
    u8 *head;
    u16 network_header;
    u16 protocol;
};
struct nsproxy {
    struct net *net_ns;
};
struct task_struct {
    u32 flags;
    int tgid;
    struct task_struct *group_leader;
    struct nsproxy *nsproxy;
    char comm[16];
};
#pragma clang attribute pop

/* A kind of drops. Numbers in host byte order; IPv4 addresses mapped into IPv6. record.rs reads it. */
struct kind {
    u64 location;
    u32 reason;
    u32 program_netns;
    u32 netns;
    u16 protocol;
    u16 local_port;
    u16 remote_port;
    u8 transport;
    u8 state;
    u8 flags;
    u8 zero[3];
    u8 local[16];
    u8 remote[16];
    char program[16];
};
#define FOR_SOCKET 1
/* This kernel passes the socket if there is one. */
#define KNOWS_SOCKETS 2
#define KERNEL_THREAD 4
#define IDLE 8

struct counted {
    u64 packets;
    /* The socket's inode number; 0 if no program holds it. */
    u64 inode;
};

/* The types of these pointers describe the maps; nobody follows the pointers. */
struct {
    int (*type)[BPF_MAP_TYPE_HASH];
    int (*max_entries)[KINDS_MAX];
    struct kind *key;
    struct counted *value;
} drops SECTION(".maps");

struct {
    int (*type)[BPF_MAP_TYPE_HASH];
    int (*max_entries)[ORDINARY_MAX];
    u32 *key;
    u32 *value;
} ordinary SECTION(".maps");

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*max_entries)[1];
    u32 *key;
    u64 *value;
} lost SECTION(".maps");

/* A failed read leaves zeros, which stand for "unknown". */
#define READ(to, from) read_kernel(&(to), sizeof(to), &(from))

/* Converts from network byte order. */
INLINE u16 host_order(u16 number) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? number : __builtin_bswap16(number);
}

INLINE u32 number_of(struct net *net) {
    u32 inum = 0;
    if (net)
        READ(inum, net->ns.inum);
    return inum;
}

INLINE void map_ipv4(u8 *address, const void *from) {
    address[10] = 0xff;
    address[11] = 0xff;
    read_kernel(address + 12, 4, from);
}

/* Reads the socket's ends and state. Connections in TIME_WAIT or NEW_SYN_RECV are no complete `struct sock`. */
INLINE void take_socket(struct kind *kind, struct sock *sk, u64 *inode) {
    struct sock_common *common = &sk->__sk_common;
    u16 family = 0, port = 0;
    u8 state = 0;
    struct net *net = 0;
    READ(net, common->skc_net.net);
    kind->netns = number_of(net);
    READ(family, common->skc_family);
    READ(state, common->skc_state);
    if (family != AF_INET && family != AF_INET6)
        return;
    if (state != TCP_TIME_WAIT && state != TCP_NEW_SYN_RECV) {
        u16 type = 0, transport = 0;
        struct socket *socket = 0;
        READ(type, sk->sk_type);
        READ(transport, sk->sk_protocol);
        /* This includes the kernel's own sockets for resets: their port field holds no port. */
        if (type == SOCK_RAW)
            return;
        kind->transport = transport;
        READ(socket, sk->sk_socket);
        /* The structure starts with the socket, so both have the same address. */
        if (socket)
            READ(*inode, ((struct socket_alloc *)socket)->vfs_inode.i_ino);
    } else {
        kind->transport = IPPROTO_TCP;
    }
    kind->state = state;
    READ(kind->local_port, common->skc_num);
    READ(port, common->skc_dport);
    kind->remote_port = host_order(port);
    if (family == AF_INET) {
        map_ipv4(kind->local, &common->skc_rcv_saddr);
        map_ipv4(kind->remote, &common->skc_daddr);
    } else if (__builtin_preserve_field_info(common->skc_v6_daddr, FIELD_EXISTS)) {
        read_kernel(kind->local, 16, &common->skc_v6_rcv_saddr);
        read_kernel(kind->remote, 16, &common->skc_v6_daddr);
    }
}

/* Reads the local end from the packet's headers: its destination, or its source if it was being sent. */
INLINE void take_packet(struct kind *kind, struct sk_buff *skb, int is_sent) {
    u8 first = 0, transport = 0;
    u16 offset = 0, port = 0;
    u8 *head = 0, *ports;
    READ(head, skb->head);
    READ(offset, skb->network_header);
    head += offset;
    READ(first, *head);
    if (kind->protocol == ETH_P_IP && first >> 4 == 4) {
        u16 fragment = 0;
        READ(fragment, head[6]);
        READ(transport, head[9]);
        if (host_order(fragment) & 0x1fff)
            return;
        map_ipv4(kind->local, head + (is_sent ? 12 : 16));
        ports = head + (first & 15) * 4;
    } else if (kind->protocol == ETH_P_IPV6 && first >> 4 == 6) {
        READ(transport, head[6]);
        read_kernel(kind->local, 16, head + (is_sent ? 8 : 24));
        ports = head + 40;
    } else {
        return;
    }
    if (transport != IPPROTO_TCP && transport != IPPROTO_UDP)
        return;
    kind->transport = transport;
    READ(port, ports[is_sent ? 0 : 2]);
    kind->local_port = host_order(port);
}

INLINE void take_program(struct kind *kind) {
    struct task_struct *task = (void *)current_task(), *leader = 0;
    struct nsproxy *nsproxy = 0;
    struct net *net = 0;
    u32 flags = 0;
    int tgid = 0;
    READ(tgid, task->tgid);
    if (!tgid) {
        kind->flags |= IDLE;
        return;
    }
    READ(leader, task->group_leader);
    READ(kind->program, leader->comm);
    READ(flags, task->flags);
    if (flags & PF_KTHREAD) {
        kind->flags |= KERNEL_THREAD;
        return;
    }
    READ(nsproxy, task->nsproxy);
    if (nsproxy)
        READ(net, nsproxy->net_ns);
    kind->program_netns = number_of(net);
}

INLINE void count(const struct kind *kind, u64 inode) {
    struct counted *counted = map_lookup(&drops, kind);
    if (!counted) {
        struct counted none = {.packets = 0, .inode = inode};
        u32 first = 0;
        u64 *uncounted;
        /* Another core may have inserted it first; that is fine. */
        map_update(&drops, kind, &none, BPF_NOEXIST);
        counted = map_lookup(&drops, kind);
        if (!counted) {
            uncounted = map_lookup(&lost, &first);
            if (uncounted)
                __sync_fetch_and_add(uncounted, 1);
            return;
        }
    }
    __sync_fetch_and_add(&counted->packets, 1);
}

INLINE int take(struct sk_buff *skb, u64 location, u32 reason, struct sock *receiver, u8 flags) {
    struct kind kind;
    struct sock *sender = 0;
    struct net_device *dev = 0;
    struct net *net = 0;
    u64 inode = 0;
    u16 protocol = 0;
    if (map_lookup(&ordinary, &reason))
        return 0;
    __builtin_memset(&kind, 0, sizeof(kind));
    kind.location = location;
    kind.reason = reason;
    kind.flags = flags;
    READ(protocol, skb->protocol);
    kind.protocol = host_order(protocol);
    READ(sender, skb->sk);
    if (receiver || sender) {
        kind.flags |= FOR_SOCKET;
        take_socket(&kind, receiver ? receiver : sender, &inode);
    } else {
        READ(dev, skb->dev);
        if (dev)
            READ(net, dev->nd_net.net);
        kind.netns = number_of(net);
    }
    if (!kind.local_port)
        take_packet(&kind, skb, !receiver && sender);
    take_program(&kind);
    count(&kind, inode);
    return 0;
}

/* Since Linux 6.11 the tracepoint passes the socket that the packet is for. */
SECTION("raw_tp/kfree_skb") int dropped_for_socket(u64 *arguments) {
    return take((void *)arguments[0], arguments[1], arguments[2], (void *)arguments[3], KNOWS_SOCKETS);
}

SECTION("raw_tp/kfree_skb") int dropped(u64 *arguments) {
    return take((void *)arguments[0], arguments[1], arguments[2], 0, 0);
}

/* The kernel lets only GPL-compatible programs read its memory. */
char licence[] SECTION("license") = "Dual BSD/GPL";
