//! The program itself, built by this package so that its tests find it without a second build.

fn main() -> std::process::ExitCode {
    mcpeval::cli::main()
}
