//! A thread of a program under test that hangs, wherever it is just then.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Stops a thread by its name (ptrace(2): PTRACE_SEIZE, PTRACE_INTERRUPT) until its input ends, and says how that went.
const HELPER: &str = r#"
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes, libc.ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long
pid, name = sys.argv[1:]
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
def found():
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            if open(f"/proc/{pid}/task/{task}/comm").read().strip().startswith(name): return int(task)
        except OSError: pass
while not (tid := found()): time.sleep(0.01)
for request in (0x4206, 0x4207):
    if libc.ptrace(request, tid, 0, 0) != 0:
        print("refused", flush=True); sys.exit()
os.waitpid(tid, 0x40000000)
print("frozen", flush=True)
while True:
    _, status = os.waitpid(tid, 0x40000000)
    if os.WIFEXITED(status) or os.WIFSIGNALED(status): break
print("ended", flush=True)
"#;

/// A thread that is stopped until this is dropped.
pub(crate) struct Frozen {
    helper: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Frozen {
    /// Stops a thread of a process as soon as there is one whose name begins so. Where that is not possible: nothing, and a note that the test is skipped.
    pub(crate) fn thread(process: &Child, name: &str) -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", HELPER, &process.id().to_string(), name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut helper) = command.spawn() else {
            println!("skipped: there is no python3");
            return None;
        };
        let (input, output) = (helper.stdin.take(), BufReader::new(helper.stdout.take().unwrap()));
        let mut frozen = Self { helper, input, output };
        match frozen.said().as_str() {
            "frozen" => Some(frozen),
            "refused" => {
                println!("skipped: ptrace(2) is not allowed here");
                None
            }
            other => panic!("{name}: {other:?}"),
        }
    }

    /// True if the process ended while its thread was stopped. It waits for its end.
    pub(crate) fn ended(mut self) -> bool {
        self.said() == "ended"
    }

    fn said(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Frozen {
    /// The thread goes on.
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.helper.wait();
    }
}
