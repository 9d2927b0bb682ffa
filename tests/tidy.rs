//! The rules of the house that a machine can check.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

struct Source {
    path: PathBuf,
    lines: Vec<String>,
}

/// Every file of the core, without the tests at its foot.
fn sources() -> Vec<Source> {
    fn collect(folder: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("\nmod tests {").next().unwrap();
                found.push(Source { path, lines: text.lines().map(str::to_owned).collect() });
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 10, "the sources were not found");
    found
}

/// The door hands orderings through and has none of its own.
fn is_the_door(path: &Path) -> bool {
    ["src/sync.rs", "src/sync/real.rs", "src/sync/modelled.rs"].iter().any(|door| path.ends_with(door))
}

fn code(line: &str) -> &str {
    line.split("//").next().unwrap()
}

/// The ids `O1`, `O2`, ... in the comments of a line.
fn ids(line: &str) -> Vec<String> {
    let Some((_, comment)) = line.split_once("//") else { return Vec::new() };
    comment
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| {
            word.strip_prefix('O').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
        .map(str::to_owned)
        .collect()
}

/// The rows of the table "Memory order" in a module's header: its ids, each with the id it pairs with.
fn ledger(lines: &[String]) -> Vec<(String, String)> {
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("//! | O"))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert!(cells.len() >= 5 && cells[1..5].iter().all(|cell| !cell.is_empty()), "half a row: {row}");
            (format!("O{}", cells[0]), cells[3].to_owned())
        })
        .collect()
}

/// The ledger that speaks for a file: its own, or that of the module it is part of.
fn ledger_of(source: &Source, all: &[Source]) -> Vec<(String, String)> {
    let own = ledger(&source.lines);
    if !own.is_empty() {
        return own;
    }
    let parent = source.path.with_file_name("mod.rs");
    all.iter().find(|other| other.path == parent).map_or(own, |parent| ledger(&parent.lines))
}

#[test]
fn only_the_door_names_atomics() {
    for source in sources() {
        if is_the_door(&source.path) {
            continue;
        }
        for (at, line) in source.lines.iter().enumerate() {
            let code = code(line);
            let named = ["sync::atomic", "atomic::Atomic", "AtomicU", "AtomicB", "AtomicP"];
            assert!(
                !named.iter().any(|name| code.contains(name)),
                "{}:{}: atomics come through sync.rs: {line}",
                source.path.display(),
                at + 1
            );
        }
    }
}

#[test]
fn every_ordering_cites_the_ledger_and_every_entry_is_cited() {
    let all = sources();
    for folder in all.iter().filter(|source| !ledger(&source.lines).is_empty()) {
        let rows = ledger(&folder.lines);
        let is_module = folder.path.file_name().is_some_and(|name| name == "mod.rs");
        let cited: BTreeSet<String> = all
            .iter()
            .filter(|other| {
                other.path == folder.path
                    || is_module
                        && other.path.parent() == folder.path.parent()
                        && ledger(&other.lines).is_empty()
            })
            .flat_map(|source| {
                source.lines.iter().filter(|line| !line.starts_with("//!")).flat_map(|l| ids(l))
            })
            .collect();
        for (id, partner) in &rows {
            assert!(cited.contains(id), "{}: nothing cites {id}", folder.path.display());
            let partners = ids(&format!("// {partner}"));
            assert!(
                ["none", "itself"].iter().any(|word| partner.contains(word)) || !partners.is_empty(),
                "{}: {id} names no partner: {partner}",
                folder.path.display()
            );
            for partner in partners {
                let known = rows.iter().any(|(id, _)| *id == partner);
                assert!(known, "{}: {id} pairs with {partner}, which is not there", folder.path.display());
            }
        }
    }
    for source in &all {
        if is_the_door(&source.path) {
            continue;
        }
        let known: BTreeSet<String> = ledger_of(source, &all).into_iter().map(|(id, _)| id).collect();
        for (at, line) in source.lines.iter().enumerate() {
            let words: Vec<&str> = code(line).split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let in_use = line.trim_start().starts_with("use ") || line.trim_start().starts_with("sync::");
            if in_use || line.starts_with("//") || !words.iter().any(|word| ORDERINGS.contains(word)) {
                continue;
            }
            // rustfmt may move a comment to the next line or two.
            let near: Vec<String> =
                source.lines[at..source.lines.len().min(at + 3)].iter().flat_map(|line| ids(line)).collect();
            let here = format!("{}:{}: {}", source.path.display(), at + 1, line.trim());
            assert!(!near.is_empty(), "no O id: {here}");
            assert!(known.contains(&near[0]), "{} is not in the table: {here}", near[0]);
        }
    }
}

#[test]
fn every_unsafe_block_cites_an_invariant_or_a_contract() {
    for source in sources() {
        for (at, line) in source.lines.iter().enumerate() {
            let code = code(line);
            if !code.contains("unsafe {") && !code.contains("unsafe impl") {
                continue;
            }
            let reason = source.lines[at.saturating_sub(4)..at].join(" ");
            let cites = reason.contains("SAFETY:")
                && (reason.contains("contract")
                    || reason.split_whitespace().any(|word| {
                        let id = word.trim_end_matches([':', ',', '.']);
                        id.strip_prefix('I')
                            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
                    }));
            assert!(
                cites,
                "{}:{}: unsafe without its reason: {}",
                source.path.display(),
                at + 1,
                line.trim()
            );
        }
    }
}
