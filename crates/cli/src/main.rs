//! The program `chokepoint`.

use std::process::ExitCode;

fn main() -> ExitCode {
    chokepoint::main()
}
