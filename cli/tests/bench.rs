//! `tollgate bench`, completions and manual pages as their users meet them.
#![allow(missing_docs)]

mod common;

use common::run;
use serde_json::Value;

#[test]
fn every_row_is_there_and_none_went_over() {
    let ran = run(&["bench", "--seconds", "0.04", "--threads", "1,2,1", "--json"]);
    assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (Some(0), "", 1));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let list = |name: &str| report[name].as_array().unwrap();
    assert_eq!((list("floors").len(), list("rows").len(), list("proofs").len()), (2, 2 * 10 * 4, 10));
    for row in list("rows") {
        let n = |name: &str| row[name].as_f64().unwrap();
        assert!(n("calls") > 0.0 && n("ns_per_check") > 0.0 && n("x_cas") > 0.0, "{row}");
        assert!(n("checks_per_second") > 0.0, "{row}");
    }
    for proof in list("proofs") {
        let n = |name: &str| proof[name].as_u64().unwrap();
        assert!(n("admitted") > 0 && n("peak") <= n("bound") && n("threads") == 2, "{proof}");
    }
}

#[test]
fn the_table_has_a_line_for_each_algorithm() {
    let ran =
        run(&["bench", "--seconds", "0.02", "--threads", "1", "--algorithm", "log", "--algorithm", "fixed"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for words in [
        "1 thread; a bare load and compare-and-swap: ",
        "\nlog ",
        "\nfixed ",
        "no window went over its bound:",
        "on one core",
    ] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    assert!(!ran.out.contains("\nwindow "));
}

#[test]
fn what_can_not_be_done_is_said() {
    for (options, why) in [
        (
            ["--threads", "0"],
            "invalid value '0' for '--threads <N,..>': `0` is not a number of threads from 1 to 1024",
        ),
        (["--threads", "1,x"], "invalid value 'x' for '--threads <N,..>': `x` is not a number of threads"),
        (
            ["--seconds", "0"],
            "invalid value '0' for '--seconds <S>': `0` is not a number of seconds from 0.01 to 3600",
        ),
        (["--seconds", "nan"], "invalid value 'nan' for '--seconds <S>': `nan` is not a number of seconds"),
        (["--algorithm", "sieve"], "invalid value 'sieve' for '--algorithm <NAME>'"),
    ] {
        let ran = run(&[&["bench"], &options[..]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{options:?}");
        assert!(ran.err.starts_with(&format!("error: {why}")), "{options:?}: {}", ran.err);
    }
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = run(&["completions", shell]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{shell}");
        for word in ["tollgate", "simulate", "refuse-at-most"] {
            assert!(ran.out.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(run(&["completions", "csh"]).code, Some(2));
}

/// bash itself completes with what it was given.
#[test]
fn bash_completes_a_command() {
    let script = format!(
        "source <('{}' completions bash); COMP_WORDS=(tollgate pl) COMP_CWORD=1; _tollgate tollgate pl tollgate; \
         echo \"${{COMPREPLY[@]}}\"",
        env!("CARGO_BIN_EXE_tollgate")
    );
    let output = std::process::Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "plan\n", "{output:?}");
}

#[test]
fn manual_pages_tell_options_and_exit_codes() {
    for (page, words) in [
        (&["man"][..], &[".TH tollgate 1", "tollgate\\-plan(1)"][..]),
        (
            &["man", "plan"],
            &[
                ".TH tollgate-plan 1  \"tollgate 0.",
                "refuse\\-at\\-most",
                "Exit codes",
                "130",
                "half\\-written",
            ],
        ),
        (&["man", "simulate"], &[".TH tollgate-simulate 1", "flash\\-sale"]),
        (&["man", "replay"], &["false refusals"]),
        (&["man", "bench"], &["Verdict"]),
    ] {
        let ran = run(page);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{page:?}");
        for words in words {
            assert!(ran.out.contains(words), "{words}: {}", ran.out);
        }
    }
    assert_eq!(run(&["man", "sieve"]).code, Some(2));
}
