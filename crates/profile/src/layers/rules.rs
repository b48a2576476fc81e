//! The rules that map functions to layers, as data: names, what these functions do, and the source of that. If several rules name a function, the first one
//! counts. If several functions of a stack are named, the innermost one counts.

use self::MatchOn::{Kernel, KernelLeaf, KernelModule, User, UserFile};
use super::layer::Layer;

/// Which part of a frame a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOn {
    /// Any kernel function of the stack.
    Kernel,
    /// The innermost function, if it is a kernel function.
    KernelLeaf,
    /// The kernel module of any kernel function.
    KernelModule,
    /// Any user function.
    User,
    /// The file of any user function.
    UserFile,
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// The layer of matching functions.
    pub layer: Layer,
    /// What it matches.
    pub on: MatchOn,
    /// Names, with `*` for any letters.
    pub names: &'static [&'static str],
    /// What these functions do.
    pub meaning: &'static str,
    /// Where this is documented.
    pub source: &'static str,
}

const fn rule(layer: Layer, on: MatchOn, names: &'static [&'static str], meaning: &'static str, source: &'static str) -> Rule {
    Rule { layer, on, names, meaning, source }
}

/// All rules.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    rule(Layer::Unknown, User, &["[other]"],
        "stands for the stacks that a profile has no room for", "crates/profile/src/sampling/interned.rs"),
    // The running function decides, whatever called it.
    rule(Layer::Lock, KernelLeaf, &["native_queued_spin_lock_slowpath", "queued_spin_lock_slowpath", "__pv_queued_spin_lock_slowpath",
        "queued_read_lock_slowpath", "queued_write_lock_slowpath", "osq_lock", "mutex_spin_on_owner", "rwsem_spin_on_owner"],
        "waits for a lock that another core holds, and burns the core meanwhile", "kernel/locking/qspinlock.c, osq_lock.c, mutex.c, rwsem.c"),
    rule(Layer::SyscallEntry, KernelLeaf, &["entry_SYSCALL_64*", "entry_SYSENTER*", "entry_SYSRETQ*", "syscall_return_via_sysret", "do_syscall_64",
        "x64_sys_call", "syscall_enter_from_user_mode*", "syscall_exit_to_user_mode*", "syscall_trace_enter", "exit_to_user_mode_*", "error_entry",
        "error_return", "el0_svc*", "el0t_64_sync*", "invoke_syscall", "ret_to_user*"],
        "changes between user and kernel mode", "arch/x86/entry/entry_64.S, kernel/entry/common.c, arch/arm64/kernel/entry-common.c"),
    rule(Layer::SyscallEntry, KernelLeaf, &["srso_*", "retbleed_*", "__x86_indirect_thunk*", "__x86_indirect_call_thunk*",
        "__x86_indirect_jump_thunk*", "__x86_return_thunk", "clear_bhb_loop", "write_ibpb", "entry_ibpb", "entry_untrain_ret", "its_return_thunk"],
        "keeps speculation in check at returns and indirect calls", "Documentation/admin-guide/hw-vuln/spectre.rst, srso.rst"),

    // The rest of the entry code, unless a more inner function is named.
    rule(Layer::SyscallEntry, Kernel, &["__seccomp_filter", "__secure_computing", "seccomp_*", "__audit_syscall_*"],
        "checks done at each system call", "Documentation/userspace-api/seccomp_filter.rst"),

    // The port search comes before connection set-up, since it is part of it.
    rule(Layer::PortSearch, Kernel, &["inet_hash_connect", "inet6_hash_connect", "__inet_hash_connect", "__inet_check_established",
        "__inet6_check_established", "tcp_twsk_unique", "inet_csk_get_port", "inet_csk_find_open_port"],
        "looks for a local port whose pair of addresses is free, port after port", "net/ipv4/inet_hashtables.c, inet_connection_sock.c"),

    rule(Layer::Netfilter, KernelModule, &["nf_*", "nft_*", "x_tables", "ip_tables", "ip6_tables", "iptable_*", "ip6table_*", "xt_*", "ipt_*", "ip_set*"],
        "modules of the packet filter", "net/netfilter/"),
    rule(Layer::Netfilter, Kernel, &["nf_*", "__nf_*", "nft_*", "ipt_*", "xt_*", "iptable_*", "ipv4_conntrack_*", "ipv6_conntrack_*",
        "hash_conntrack_*", "early_drop*", "tcp_in_window", "destroy_conntrack", "init_conntrack", "gc_worker"],
        "packet filter, address translation and connection tracking", "net/netfilter/core.c, nf_conntrack_core.c, nf_tables_core.c"),

    rule(Layer::Tls, KernelModule, &["tls", "aesni_intel", "ghash_*", "aes_ce*", "chacha*", "libaes*"],
        "TLS and ciphers in the kernel", "Documentation/networking/tls.rst"),
    rule(Layer::Tls, Kernel, &["tls_sw_*", "tls_push_*", "aesni_*", "crypto_aead_*", "aes_gcm_*"],
        "TLS and ciphers in the kernel", "net/tls/tls_sw.c"),

    rule(Layer::Connection, Kernel, &["tcp_v4_connect", "tcp_v6_connect", "inet_stream_connect", "__inet_stream_connect", "__sys_connect*",
        "__x64_sys_connect", "__arm64_sys_connect", "tcp_finish_connect", "unix_stream_connect"],
        "opens a connection", "net/ipv4/tcp_ipv4.c, af_inet.c"),
    rule(Layer::Connection, Kernel, &["tcp_conn_request", "tcp_v4_conn_request", "tcp_v6_conn_request", "tcp_v4_syn_recv_sock", "tcp_v6_syn_recv_sock",
        "tcp_check_req", "tcp_create_openreq_child", "inet_csk_clone_lock", "sk_clone*", "inet_csk_complete_hashdance", "tcp_child_process",
        "reqsk_*", "inet_reqsk_*", "inet_csk_reqsk_*", "tcp_get_cookie_sock", "cookie_v4_*", "cookie_v6_*", "inet_csk_accept", "inet_accept",
        "__inet_accept", "__sys_accept*", "__x64_sys_accept*", "__arm64_sys_accept*", "do_accept", "unix_accept"],
        "takes a connection in: SYN, handshake, accept", "net/ipv4/tcp_input.c, tcp_minisocks.c, inet_connection_sock.c"),
    rule(Layer::Connection, Kernel, &["tcp_close", "__tcp_close", "inet_release", "inet6_release", "__sock_release", "sock_close", "sock_release",
        "tcp_shutdown", "inet_shutdown", "__sys_shutdown*", "tcp_fin", "tcp_time_wait*", "inet_twsk_*", "tcp_timewait_state_process", "tw_timer_handler",
        "tcp_v4_destroy_sock", "tcp_v6_destroy_sock", "inet_csk_destroy_sock", "tcp_done*", "inet_put_port", "inet_bind_bucket_*", "inet_bind2_bucket_*",
        "inet_unhash", "sk_free", "__sk_free", "sk_destruct", "__sk_destruct", "inet_sock_destruct", "unix_release*", "tcp_reset", "tcp_disconnect",
        "tcp_write_queue_purge", "sk_stream_kill_queues"],
        "closes a connection and takes its socket down", "net/ipv4/tcp.c, tcp_minisocks.c, inet_timewait_sock.c"),
    rule(Layer::Connection, Kernel, &["__sys_socket*", "__x64_sys_socket", "__arm64_sys_socket", "__sock_create", "sock_create*", "inet_create",
        "inet6_create", "unix_create*", "sk_alloc", "sk_prot_alloc", "sock_alloc*", "tcp_init_sock", "tcp_v4_init_sock", "inet_ehash_*", "inet_hash*",
        "__inet_inherit_port", "inet_bind*", "__inet_bind*", "__sys_bind*", "do_sock_setsockopt", "__sys_setsockopt", "sk_setsockopt",
        "do_tcp_setsockopt", "do_sock_getsockopt", "__sys_getsockname", "__sys_getpeername", "sock_map_fd"],
        "makes a socket and sets it up", "net/socket.c, net/core/sock.c"),

    rule(Layer::SocketReceive, Kernel, &["tcp_recvmsg*", "inet_recvmsg", "inet6_recvmsg", "sock_recvmsg*", "sock_read_iter", "__sys_recv*", "___sys_recvmsg",
        "____sys_recvmsg", "unix_stream_read_*", "unix_stream_recvmsg", "tcp_cleanup_rbuf", "tcp_rcv_space_adjust", "skb_copy_datagram_*",
        "tcp_splice_read", "sock_splice_read", "tcp_update_recv_tstamps", "udp_recvmsg*"],
        "copies received bytes to the program", "net/ipv4/tcp.c"),
    rule(Layer::TcpTransmit, Kernel, &["tcp_write_xmit", "__tcp_push_pending_frames", "tcp_push", "tcp_push_one", "tcp_transmit_skb", "__tcp_transmit_skb",
        "tcp_send_ack", "__tcp_send_ack*", "tcp_send_fin", "tcp_send_active_reset", "tcp_v4_send_ack", "tcp_v4_send_reset", "tcp_v4_send_synack",
        "tcp_make_synack", "tcp_connect", "tcp_retransmit_*", "__tcp_retransmit_skb", "tcp_tsq_*", "tcp_tasklet_func", "tcp_pace_kick", "tcp_established_options",
        "tcp_event_new_data_sent", "tcp_options_write", "tcp_tso_*", "tcp_schedule_loss_probe"],
        "cuts the stream into segments and sends them", "net/ipv4/tcp_output.c"),
    rule(Layer::TcpTransmit, Kernel, &["ip_queue_xmit", "__ip_queue_xmit", "ip_local_out", "__ip_local_out", "ip_output", "ip_mc_output", "ip_finish_output*",
        "__ip_finish_output", "ip_build_and_send_pkt", "ip_send_unicast_reply", "inet6_csk_xmit", "ip6_xmit", "ip6_output", "ip6_finish_output*",
        "ip6_local_out", "ip_route_output_*", "ip6_route_output_*", "neigh_*", "__neigh_*", "inet_csk_route_*", "inet_sk_rebuild_header"],
        "routes a packet and gives it to the device", "net/ipv4/ip_output.c"),
    rule(Layer::TcpTransmit, Kernel, &["__dev_queue_xmit", "dev_hard_start_xmit", "sch_direct_xmit", "__qdisc_run", "qdisc_*", "net_tx_action",
        "validate_xmit_skb*", "*_start_xmit", "start_xmit", "veth_xmit", "loopback_xmit", "br_dev_xmit", "xmit_one", "skb_tx_hash", "netdev_core_pick_tx",
        "netif_skb_features", "fq_codel_*", "fq_enqueue", "fq_dequeue", "htb_*", "tbf_*", "pfifo_fast_*", "virtqueue_add*", "virtqueue_kick*", "xmit_skb", "br_*"],
        "queues the packet at the device and hands it over", "net/core/dev.c, net/sched/sch_generic.c"),
    rule(Layer::SoftirqReceive, Kernel, &["net_rx_action", "__napi_poll", "napi_*", "process_backlog", "__netif_receive_skb*", "netif_receive_skb*",
        "__netif_rx", "netif_rx*", "enqueue_to_backlog", "get_rps_cpu", "gro_*", "dev_gro_receive", "skb_gro_*", "tcp_gro_*", "tcp4_gro_*", "inet_gro_*",
        "*_poll_rx", "virtnet_poll", "virtnet_receive*", "receive_buf", "receive_mergeable", "veth_poll", "veth_xdp_*", "mlx5e_*", "i40e_napi_poll", "ice_napi_poll",
        "ixgbe_poll", "igb_poll", "ena_io_poll", "eth_type_trans", "dev_forward_skb*", "__dev_forward_skb*", "skb_scrub_packet"],
        "takes packets from the device", "net/core/dev.c; Documentation/networking/napi.rst"),
    rule(Layer::SoftirqReceive, Kernel, &["ip_rcv*", "ip_list_rcv", "ip_sublist_rcv*", "ip_local_deliver*", "ip_protocol_deliver_rcu", "ip_forward*",
        "ip_route_input_*", "fib_validate_source*", "__fib_validate_source", "ipv6_rcv", "ip6_input*", "ip6_protocol_deliver_rcu", "ip6_rcv_*", "tcp_v4_rcv",
        "tcp_v6_rcv", "tcp_v4_do_rcv", "tcp_v6_do_rcv", "tcp_v4_early_demux", "tcp_rcv_established", "tcp_rcv_state_process", "tcp_ack",
        "tcp_clean_rtx_queue*", "tcp_data_queue*", "tcp_queue_rcv", "tcp_validate_incoming", "tcp_rack_*", "tcp_urg", "tcp_parse_*", "__inet_lookup_*",
        "inet_lookup_*", "tcp_filter", "sk_filter_trim_cap", "tcp_add_backlog", "__release_sock", "release_sock", "tcp_release_cb", "tcp_try_coalesce",
        "tcp_event_data_recv", "tcp_newly_delivered", "cubictcp_*", "bbr_*", "udp_rcv", "__udp4_lib_rcv", "icmp_rcv"],
        "takes a packet up to its socket", "net/ipv4/ip_input.c, tcp_ipv4.c, tcp_input.c"),
    rule(Layer::SocketSend, Kernel, &["tcp_sendmsg*", "sock_sendmsg*", "__sock_sendmsg", "inet_sendmsg", "inet6_sendmsg", "sock_write_iter", "__sys_sendto",
        "__sys_sendmsg", "___sys_sendmsg", "____sys_sendmsg", "unix_stream_sendmsg", "tcp_stream_alloc_skb", "sk_stream_alloc_skb", "tcp_sendpage*",
        "splice_to_socket", "skb_splice_from_iter", "sock_sendpage", "inet_sendpage", "tcp_send_mss", "tcp_skb_entail", "udp_sendmsg", "sk_page_frag_refill",
        "skb_do_copy_data_nocache", "skb_copy_to_page_nocache"],
        "copies the program's bytes into the socket", "net/ipv4/tcp.c"),

    rule(Layer::Polling, Kernel, &["napi_busy_loop*", "__napi_busy_loop", "ep_busy_loop*", "sk_busy_loop*", "io_sq_thread", "poll_idle", "cpu_idle_poll"],
        "asks again and again whether something came", "Documentation/networking/napi.rst, busy polling"),
    rule(Layer::Scheduler, Kernel, &["__schedule", "schedule*", "preempt_schedule*", "__cond_resched", "finish_task_switch*", "pick_next_task*", "pick_task_*",
        "try_to_wake_up", "ttwu_*", "wake_up_*", "__wake_up*", "default_wake_function", "autoremove_wake_function", "woken_wake_function", "pollwake",
        "sock_def_readable", "sock_def_write_space", "sk_stream_write_space", "sock_def_wakeup", "enqueue_task*", "dequeue_task*", "update_curr",
        "update_load_avg", "select_task_rq*", "select_idle_*", "set_next_*", "put_prev_*", "sched_ttwu_pending", "sched_balance_*", "load_balance",
        "newidle_balance*", "activate_task", "resched_curr", "prepare_task_switch", "__switch_to*", "switch_mm*", "sys_sched_yield", "yield_task*",
        "__x64_sys_sched_yield", "do_sched_yield", "wait_woken", "sk_wait_data", "inet_csk_wait_for_connect"],
        "chooses what runs next, and wakes what waits", "kernel/sched/core.c, fair.c"),
    rule(Layer::Scheduler, Kernel, &["ep_*", "__ep_*", "do_epoll_*", "__x64_sys_epoll_*", "__arm64_sys_epoll_*", "eventpoll_*", "do_poll*", "do_sys_poll", "__x64_sys_poll",
        "do_select", "core_sys_select", "poll_freewait", "tcp_poll", "sock_poll", "unix_poll", "io_cqring_wait"],
        "waits for events", "fs/eventpoll.c, fs/select.c; epoll(7)"),
    rule(Layer::Lock, Kernel, &["futex_*", "__futex_*", "do_futex", "__x64_sys_futex*", "__arm64_sys_futex*", "rwsem_down_*", "rwsem_optimistic_spin", "rwsem_wake", "__mutex_lock*",
        "mutex_optimistic_spin", "__lock_sock", "__down*", "fcntl_setlk", "flock_lock_inode", "posix_lock_inode"],
        "waits for a lock, and lets the next have it", "Documentation/locking/, futex(7)"),

    rule(Layer::PageFault, Kernel, &["asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "handle_mm_fault", "__handle_mm_fault", "do_page_fault", "do_mem_abort",
        "do_translation_fault", "el0_da", "el0_ia", "clear_page_*", "clear_huge_page", "folio_zero_user", "do_anonymous_page", "do_fault*", "do_wp_page",
        "wp_page_copy", "filemap_map_pages", "lru_add_fn", "folio_add_lru*", "charge_memcg", "__mem_cgroup_charge"],
        "gives the program a page at its first use, and fills it with zeros", "mm/memory.c"),
    rule(Layer::PageFault, Kernel, &["do_mmap", "mmap_region", "vm_mmap_pgoff", "__mmap_region", "__vm_munmap", "do_vmi_munmap", "do_vmi_align_munmap", "do_munmap", "unmap_region", "unmap_vmas",
        "unmap_page_range", "zap_*", "tlb_*", "flush_tlb_*", "__x64_sys_brk", "__do_sys_brk", "do_brk_flags", "do_madvise*", "madvise_*", "mprotect_fixup", "do_mprotect_pkey",
        "exit_mmap", "dup_mm*", "copy_page_range", "free_pgtables", "move_vma", "__x64_sys_mmap", "ksys_mmap_pgoff", "khugepaged*", "compact_*", "kswapd*",
        "shrink_*", "try_to_free_*", "kcompactd*"],
        "maps, unmaps and reclaims memory", "mm/mmap.c, mm/madvise.c, mm/vmscan.c"),

    rule(Layer::FileSystem, Kernel, &["vfs_*", "do_sys_open*", "do_sys_openat2", "do_filp_open", "path_openat", "link_path_walk*", "lookup_*", "__d_lookup*", "filename_lookup", "user_path_at*",
        "getname*", "do_dentry_open", "do_sendfile", "do_splice*", "splice_*", "__x64_sys_sendfile*", "ksys_read", "ksys_write", "do_iter_*", "do_writev", "do_readv", "new_sync_*",
        "generic_file_*", "generic_perform_write", "filemap_*", "page_cache_*", "close_fd", "__close_fd", "file_close_fd*", "filp_close", "filp_flush", "__fput*", "fput*", "____fput",
        "alloc_fd", "alloc_empty_file", "alloc_file*", "do_fcntl", "dput", "__dentry_kill", "iput", "evict", "ext4_*", "__ext4_*", "jbd2_*", "xfs_*", "btrfs_*", "ovl_*", "shmem_*",
        "pipe_*", "anon_pipe_*", "eventfd_*", "inotify_*", "fsnotify*", "cp_new_stat", "__do_sys_newfstat*", "submit_bio*", "blk_mq_*", "blk_*", "bio_*", "nvme_*", "virtblk_*",
        "io_submit*", "ioctl_*", "tty_*", "n_tty_*", "proc_*", "seq_read*", "kernfs_*"],
        "opens, reads, writes and sends files", "fs/read_write.c, fs/namei.c, fs/splice.c; sendfile(2)"),

    rule(Layer::Interrupt, Kernel, &["asm_common_interrupt", "common_interrupt", "__common_interrupt", "handle_irq_event*", "__handle_irq_event*", "handle_edge_irq", "handle_fasteoi_irq",
        "asm_sysvec_*", "sysvec_*", "__sysvec_*", "hrtimer_interrupt", "__hrtimer_run_queues", "tick_*", "update_process_times", "run_timer_*", "__run_timers", "call_timer_fn", "rcu_*",
        "handle_softirqs", "__do_softirq", "do_softirq", "__local_bh_enable_ip", "irq_exit_rcu", "__irq_exit_rcu", "irq_enter_rcu", "run_ksoftirqd", "vring_interrupt", "vp_interrupt", "asm_exc_nmi",
        "exc_nmi", "el1_interrupt", "el0_interrupt", "el0t_64_irq*", "el1h_64_irq*", "gic_handle_irq", "__flush_smp_call_function_queue", "generic_smp_call_function_*", "tasklet_action*",
        "scheduler_tick", "sched_tick", "perf_event_task_tick", "__perf_event_*", "perf_*", "irq_work_run*", "kvm_steal_clock", "account_*"],
        "handles an interrupt, a timer or a soft interrupt other than packets", "Documentation/core-api/irq/, kernel/softirq.c"),

    rule(Layer::Idle, Kernel, &["do_idle", "cpu_startup_entry", "default_idle*", "arch_cpu_idle", "cpuidle_*", "acpi_idle_*", "acpi_processor_ffh_*", "intel_idle*", "mwait_idle*",
        "pv_native_safe_halt", "native_safe_halt", "cpu_do_idle", "secondary_startup_64*", "start_secondary", "rest_init", "__cpuidle_text_start", "haltpoll_*"],
        "nothing to run", "kernel/sched/idle.c; Documentation/admin-guide/pm/cpuidle.rst"),

    // User space.
    rule(Layer::Polling, User, &["rte_eth_rx_burst*", "*_recv_pkts*", "*_rx_burst*", "rte_pause", "rte_delay_us_*", "rte_timer_manage", "ff_epoll_wait"],
        "asks a network card again and again whether packets came", "DPDK Programmer's Guide, \"Poll Mode Driver\""),
    rule(Layer::Allocator, User, &["malloc", "free", "calloc", "realloc", "reallocarray", "cfree", "memalign", "posix_memalign", "aligned_alloc", "__libc_malloc*", "__libc_free*",
        "__libc_calloc", "__libc_realloc", "__libc_memalign", "_int_malloc", "_int_free*", "_int_realloc", "_int_memalign", "malloc_consolidate", "unlink_chunk*", "sysmalloc*", "systrim*",
        "tcache_*", "_mid_memalign", "ptmalloc_*", "arena_get*", "malloc_trim", "malloc_usable_size", "__malloc*", "__free"],
        "the C library's allocator (glibc, musl)", "malloc(3); glibc malloc/malloc.c"),
    rule(Layer::Allocator, User, &["je_*", "jemalloc*", "arena_malloc*", "arena_dalloc*", "tc_*", "tcmalloc*", "mi_*", "_mi_*", "operator new*", "operator delete*", "__rust_alloc*", "__rust_dealloc*",
        "__rust_realloc*", "__rdl_*", "alloc::alloc::*", "rpmalloc*", "snmalloc*", "scudo*"],
        "jemalloc, tcmalloc, mimalloc and the allocators of C++ and Rust", "jemalloc(3) and the projects' manuals"),
    rule(Layer::Allocator, User, &["_emalloc*", "_efree*", "_erealloc*", "_ecalloc", "_safe_emalloc*", "zend_mm_*", "_zend_mm_*", "ngx_palloc*", "ngx_pnalloc", "ngx_pcalloc", "ngx_pmemalign",
        "ngx_pfree", "ngx_create_pool", "ngx_destroy_pool", "ngx_reset_pool", "ngx_alloc", "ngx_calloc", "ngx_slab_*", "apr_palloc*", "apr_pool_*", "_PyObject_Malloc", "_PyObject_Free",
        "PyObject_Malloc", "PyObject_Free", "pymalloc_*", "zmalloc*", "zfree", "zcalloc*", "runtime.mallocgc*", "palloc", "pfree", "AllocSetAlloc*", "AllocSetFree"],
        "the allocators of PHP, nginx, Apache, Python, Redis, Go and PostgreSQL", "Zend/zend_alloc.c, nginx src/core/ngx_palloc.c"),
    rule(Layer::Allocator, UserFile, &["libjemalloc*", "libtcmalloc*", "libmimalloc*"],
        "an allocator that was loaded in the place of the C library's", "ld.so(8), LD_PRELOAD"),
    rule(Layer::Tls, UserFile, &["libssl*", "libcrypto*", "libgnutls*", "libmbedtls*", "libmbedcrypto*", "libnss3*", "libfreebl*", "libs2n*", "libgcrypt*", "libnettle*", "libhogweed*"],
        "a library for TLS or cryptography", "ssl(7ossl), crypto(7ossl)"),
    rule(Layer::Tls, User, &["SSL_*", "ssl3_*", "tls1*", "EVP_*", "aesni_*", "aes_gcm_*", "gcm_*", "ChaCha20_*", "chacha20_poly1305_*", "poly1305_*", "bn_mul_*", "bn_sqr*", "BN_*", "RSA_*", "ECDSA_*",
        "ecp_nistz256_*", "EC_*", "X25519*", "sha256_block*", "sha512_block*", "ngx_ssl_*", "rustls::*", "ring::*", "aws_lc_*", "crypto/tls.*", "crypto/*"],
        "TLS or cryptography that is linked in", "ssl(7ossl), crypto(7ossl)"),
    rule(Layer::Compression, UserFile, &["libz.so*", "libz-ng*", "libbrotli*", "libzstd*", "liblz4*", "libdeflate*", "libbz2*", "liblzma*"],
        "a library for compression", "zlib Manual"),
    rule(Layer::Compression, User, &["deflate*", "inflate*", "longest_match*", "compress_block", "fill_window*", "crc32*", "adler32*", "Brotli*", "ZSTD_*", "LZ4_*", "HUF_*", "FSE_*", "miniz_oxide::*", "flate2::*",
        "compress/*", "ngx_http_gzip_*"],
        "compression that is linked in", "zlib Manual, RFC 1951, RFC 7932, RFC 8878"),
    rule(Layer::Interpreter, UserFile, &["php", "php-fpm*", "php-cgi*", "php7*", "php8*", "libphp*", "mod_php*", "opcache.so", "python*", "libpython*", "ruby*", "libruby*", "node", "nodejs",
        "libnode*", "bun", "deno", "perl", "perl5*", "libperl*", "lua*", "liblua*", "libjvm.so", "beam.smp", "libcoreclr*", "libclrjit*", "libmonosgen*"],
        "the program or library of an interpreter or a virtual machine", "the file's name"),
    rule(Layer::Interpreter, User, &["zend_*", "php_*", "execute_ex", "ZEND_*", "_PyEval_*", "PyEval_*", "Py_*", "_Py*", "rb_*", "vm_exec*", "Builtins_*", "v8::*", "Interpreter", "StubRoutines*",
        "lua_*", "luaV_*", "Perl_*", "G1*"],
        "an interpreter or virtual machine that is linked in", "the projects' naming of functions"),
];
