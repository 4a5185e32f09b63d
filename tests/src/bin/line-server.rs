//! A server over standard input and output that answers line by line and at once; what is called decides the answer.

use std::process::ExitCode;

use mcpeval_tests::talk;

fn main() -> ExitCode {
    talk::serve()
}
