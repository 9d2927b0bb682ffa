//! Every program of `tests/c` that asserts on its own.

use std::{ffi::OsStr, fs, path::Path, process::Command};

use crate::cc::{Link, compile, compile_and_run, features, has, library, root, run};

/// Each program asserts what a library without a feature answers, so none may lack one that it was built with.
#[test]
fn the_library_has_what_it_was_built_with() {
    assert_eq!(compile_and_run("features", Link::Shared, &[]).trim(), features());
}

#[test]
fn every_function_gives_every_status() {
    for link in [Link::Static, Link::Shared] {
        compile_and_run("statuses", link, &[]);
    }
}

#[test]
fn f098_free_null() {
    compile_and_run("f098_free_null", Link::Static, &[]);
}

#[test]
fn f099_nothing_panics() {
    compile_and_run("f099_nothing_panics", Link::Static, &[]);
}

#[test]
fn f100_released_twice() {
    compile_and_run("f100_released_twice", Link::Static, &[]);
}

#[test]
fn f101_lengths() {
    compile_and_run("f101_lengths", Link::Static, &[]);
}

#[test]
fn f102_unloaded_while_threads_live() {
    let object = library().join("libtollgate.so");
    compile_and_run("f102_unloaded", Link::Static, &[OsStr::new(&object)]);
}

#[test]
fn handlers_of_signals_ask_for_no_memory() {
    let object = library().join("libtollgate.so");
    for (link, arguments) in
        [(Link::Static, &[][..]), (Link::Shared, &[]), (Link::Static, &[OsStr::new(&object)])]
    {
        compile_and_run("handlers", link, arguments);
    }
}

/// Memory that initialisers of every kind have left at any point.
#[test]
fn initialisers_help_one_another() {
    compile_and_run("initialisers", Link::Static, &[]);
}

#[test]
fn a_flipped_bit_is_found() {
    compile_and_run("flipped", Link::Static, &[]);
}

#[test]
fn a_state_is_looked_at_before_it_is_trusted() {
    compile_and_run("attached", Link::Static, &[]);
}

#[test]
fn looking_stores_nothing() {
    compile_and_run("read_only", Link::Static, &[]);
}

#[test]
fn what_is_asked_for_is_counted() {
    compile_and_run("counted", Link::Static, &[]);
}

#[test]
fn limiters_by_key_give_every_status_and_allocate_nothing() {
    compile_and_run("keyed", Link::Static, &[]);
}

#[test]
fn field_cases_of_limiters_by_key() {
    compile_and_run("keyed_cases", Link::Shared, &[]);
}

#[test]
fn threads_have_shards_and_processes_share_them() {
    compile_and_run("shards", Link::Static, &[]);
}

#[test]
fn rules_change_and_use_stays() {
    compile_and_run("live", Link::Static, &[]);
}

#[test]
fn regions_give_every_status() {
    if has("shm") {
        for link in [Link::Static, Link::Shared] {
            compile_and_run("shm", link, &[]);
        }
        compile_and_run("regions", Link::Shared, &[]);
        compile_and_run("shm_processes", Link::Static, &[]);
        compile_and_run("shm_live", Link::Static, &[]);
    }
}

#[test]
fn the_cpp_header_does_what_it_says() {
    compile_and_run("owners", Link::Shared, &[]);
}

#[test]
fn the_programs_of_the_readme_run() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let programs = readme.split("```c\n").filter(|block| block.starts_with("#include"));
    let programs: Vec<&str> = programs.map(|block| block.split("```").next().unwrap()).collect();
    assert_eq!(programs.len(), 2);
    for (number, lines) in programs.into_iter().enumerate() {
        if lines.contains("tollgate_shm_") && !has("shm") {
            continue;
        }
        let name = format!("tollgate-readme-{}", std::process::id());
        let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("readme-{number}.c"));
        fs::write(&source, lines.replace("/dev/shm/limits", &format!("/dev/shm/{name}"))).unwrap();
        let program = compile(&source, Link::Static);
        if has("std") {
            assert_eq!(run(&mut Command::new(program)), "pass\n");
        }
        if lines.contains("/dev/shm/") {
            fs::remove_file(Path::new("/dev/shm").join(name)).unwrap();
        }
    }
}
