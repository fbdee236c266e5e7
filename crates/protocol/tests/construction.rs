//! The variations of one protocol, each a text with its expected table in its first lines
//! (`#! key: value`). The sizes were found by an independent study implementation of the same
//! construction; the checker's tests read the same files for the sizes of the products.

use cohkit_protocol::construct::fault::FaultKind;
use cohkit_protocol::construct::{construct, ConstructionError};
use cohkit_protocol::text;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/construction")
}

fn expectations(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("#! "))
        .map(|line| {
            let (key, value) = line.split_once(": ").expect("`#! key: value`");
            (key.to_string(), value.to_string())
        })
        .collect()
}

/// What the construction finds, under the keys of the files.
fn found(text: &str) -> BTreeMap<String, String> {
    let protocol = text::parse(text).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|error| error.render("text", text, false)).collect::<String>())
    });
    let mut found = BTreeMap::new();
    let mut put = |key: &str, value: String| found.insert(key.to_string(), value);
    match construct(&protocol) {
        Err(ConstructionError::Refused(refusal)) => panic!("refused: {}", refusal.what),
        Err(ConstructionError::Fault(fault)) => {
            assert!(!fault.explanations.is_empty(), "a fault is shown by a sequence");
            put("verdict", fault.kind.name().to_string());
        }
        Ok(construction) => {
            let table = construction.table(false);
            let merged = construction.table(true);
            put("states", table.states.len().to_string());
            put("transitions", table.transitions().to_string());
            put("merged", format!("{}/{}", merged.states.len(), merged.transitions()));
            put("events", table.events().len().to_string());
            put("knowledge", construction.knowledge.len().to_string());
            put("resends", if construction.drains[0].note.is_some() { "yes" } else { "no" }.to_string());
            if let Some(joint) = &construction.joint {
                put("joint states", joint.states.len().to_string());
                put("joint transitions", joint.transitions().to_string());
            }
            let verdict = construction.fault().map_or("verified", |fault| fault.kind.name());
            put("verdict", verdict.to_string());
            for drain in &construction.drains {
                assert!(drain.unexercised.is_empty(), "every transition of a home happens");
            }
        }
    }
    found
}

#[test]
fn variations_have_the_sizes_and_verdicts_of_the_study() {
    let mut names: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() > 40, "the variations are there");
    let mut wrong = Vec::new();
    for path in names {
        let text = fs::read_to_string(&path).unwrap();
        let found = found(&text);
        for (key, expected) in expectations(&text) {
            if key.contains("product") || key == "undrained" || key == "difference" {
                continue;
            }
            let got = found.get(&key).map_or("nothing", String::as_str);
            if got != expected {
                wrong.push(format!("{}: {key}: expected {expected}, found {got}", path.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn ambiguous_knowledge_is_explained() {
    let text = fs::read_to_string(folder().join("ambiguous-answer.coh")).unwrap();
    let protocol = text::parse(&text).unwrap();
    let construction = construct(&protocol).ok().unwrap();
    let fault = construction.fault().unwrap();
    assert_eq!(fault.kind, FaultKind::DeadEnd);
    assert!(construction.notes().any(|note| note.text.contains("may wait for a victim that need not exist")));
}

#[test]
fn zz_probe() {
    let text = fs::read_to_string(folder().join("base.coh")).unwrap();
    let protocol = text::parse(&text).unwrap();
    let c = construct(&protocol).ok().unwrap();
    println!("classes {}", c.class_of.iter().max().unwrap()+1);
    let t = c.table(true);
    let mut names: Vec<_> = t.states.iter().map(|s| s.name.clone()).collect();
    println!("{}", names.join("  "));
    names.iter_mut().for_each(|n| if let Some(i)=n.find('~') { n.truncate(i) });
    names.sort(); names.dedup(); println!("distinct {}", names.len());
    println!("resends {:?}", c.drains[0].resends.len());
    println!("drain states {} in flight {}", c.drains[0].states, c.drains[0].in_flight);
    for f in ["ambiguous-answer-proven","early","silent-eviction","upgrade-without-data","defer-all-possible"] {
        let text = fs::read_to_string(folder().join(format!("{f}.coh"))).unwrap();
        let protocol = text::parse(&text).unwrap();
        match construct(&protocol) { Err(ConstructionError::Fault(f)) => { println!("{:?} {}", f.kind, f.text); for s in &f.explanations { println!("{}", show(s)); } }
          Ok(c) => { let f=c.fault().unwrap(); println!("{:?} {}", f.kind, f.text); for s in &f.explanations { println!("{}", show(s)); } }
          _ => {} }
    }
}
fn show(s: &cohkit_protocol::sequence::Sequence) -> String {
    s.steps.iter().map(|st| format!("   {}{}: {:?}\n", if st.visible {""} else {". "}, s.agents[st.agent], st.action)).collect()
}
