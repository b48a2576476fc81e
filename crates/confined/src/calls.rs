//! The system calls of a reader: read, memory, time, and the answer on its socket. All others are refused with EPERM (seccomp(2)).

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// The descriptor of the socket.
const SOCKET: u64 = 0;

/// A call, and the condition for an argument of it.
type Call = (libc::c_long, Option<(u8, SeccompCmpOp, u64)>);

/// Calls that are allowed. Libraries need no others: a call of theirs that fails (the size of a file, to reserve memory) is one that they can do without.
fn calls() -> Vec<Call> {
    let any = |number| (number, None);
    let on_socket = |number| (number, Some((0, SeccompCmpOp::Eq, SOCKET)));
    let not_executable = |number| (number, Some((2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)));
    vec![
        any(libc::SYS_read),
        any(libc::SYS_readv),
        any(libc::SYS_pread64),
        any(libc::SYS_lseek),
        any(libc::SYS_close),
        on_socket(libc::SYS_recvmsg),
        on_socket(libc::SYS_recvfrom),
        on_socket(libc::SYS_sendmsg),
        on_socket(libc::SYS_sendto),
        on_socket(libc::SYS_write),
        any(libc::SYS_brk),
        not_executable(libc::SYS_mmap),
        not_executable(libc::SYS_mprotect),
        any(libc::SYS_mremap),
        any(libc::SYS_munmap),
        any(libc::SYS_madvise),
        any(libc::SYS_futex),
        any(libc::SYS_clock_gettime),
        any(libc::SYS_gettimeofday),
        any(libc::SYS_getrandom),
        any(libc::SYS_sched_yield),
        any(libc::SYS_restart_syscall),
        any(libc::SYS_getpid),
        any(libc::SYS_gettid),
        any(libc::SYS_sigaltstack),
        any(libc::SYS_rt_sigaction),
        any(libc::SYS_rt_sigprocmask),
        any(libc::SYS_rt_sigreturn),
        // abort(3), where memory ran out.
        (libc::SYS_tgkill, Some((0, SeccompCmpOp::Eq, u64::from(std::process::id())))),
        any(libc::SYS_exit),
        any(libc::SYS_exit_group),
    ]
}

/// Refuses all other calls from now on; false where the kernel has no such filter.
pub(crate) fn allow_reading_alone() -> bool {
    filter().is_some_and(|filter| apply_filter(&filter).is_ok())
}

fn filter() -> Option<BpfProgram> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).ok()?;
    let mut rules = std::collections::BTreeMap::new();
    for (number, condition) in calls() {
        let condition = condition.map(|(argument, comparison, value)| {
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
                .and_then(|condition| SeccompRule::new(vec![condition]))
        });
        rules.insert(number, condition.transpose().ok()?.into_iter().collect());
    }
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, refused, SeccompAction::Allow, architecture).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_filter_on_this_architecture() {
        assert!(filter().is_some_and(|filter| !filter.is_empty()));
    }
}
