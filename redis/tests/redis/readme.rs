//! The ten lines of the README: they are the example, and they run.

use std::{env, process::Command};

use tollgate_redis_server::Server;

const README: &str = include_str!("../../../README.md");
const EXAMPLE: &str = include_str!("../../examples/limit.rs");

#[tokio::test]
async fn the_readme_s_lines_run_against_a_server() {
    assert!(README.contains(EXAMPLE), "the README shows another program than examples/limit.rs");
    let server = Server::start().await;
    // Beside this program, in the folder of examples, which the test command builds as well.
    let program = env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/limit");
    for left in ["99 left\n", "98 left\n"] {
        let output = Command::new(&program).arg(server.url()).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            left,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
