//! The program: parse, dispatch, exit code.

fn main() -> std::process::ExitCode {
    mcpeval::cli::main()
}
