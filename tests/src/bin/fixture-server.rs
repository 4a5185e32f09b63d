//! One MCP server with one sin: `fixture-server NAME [--http]`, or `--list`.

use std::process::ExitCode;

use mcpeval_tests::servers;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    servers::main(&arguments)
}
