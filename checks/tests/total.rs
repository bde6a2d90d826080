//! The closing line of `make test`, over the results of all programs of tests.

use lanemark_checks::root;
use std::process::{Command, Output};

fn total(script: &str) -> Output {
    Command::new(root().join("checks/total")).args(["bash", "-c", script]).output().unwrap()
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn the_results_of_both_harnesses_are_added_and_their_lines_are_shown() {
    let said = total(
        "echo 'test result: ok. 140 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.14s'
         echo 'test result: FAILED. 1 passed; 3 failed; 157 ignored; 0 measured; 0 filtered out; finished in 50.15s'
         echo '=== 1 failed, 172 passed, 4 skipped, 2 warnings in 135.02s (0:02:15) ==='
         printf '\\033[32m\\033[1m5 passed\\033[0m\\033[32m in 0.10s\\033[0m\\n'
         echo 'note: 7 passed cars in 3 s'",
    );
    assert_eq!(last_line(&said), "all tests: 318 passed, 4 failed, 163 skipped");
    assert!(said.status.success());
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("test result: ok. 140 passed"), "{said:?}");
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let said = total("echo 'test result: ok. 1 passed; 0 failed; 0 ignored'; exit 3");
    let line = "all tests: 1 passed, 0 failed, 0 skipped; a command failed";
    assert_eq!((said.status.code(), last_line(&said).as_str()), (Some(3), line));
}
