//! Programs with threads in clusters of different protocols, below the caches of `mesi.coh`: `mesi-l1.coh`, whose
//! threads are sequentially consistent, and `self-invalidate.coh`, whose threads are release consistent.

use cohkit_litmus::axioms::{allowed_by_thread, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::{classic, named};
use cohkit_litmus::program::{Outcome, Program};
use cohkit_litmus::run::{run_on_clusters, ClusterKind, Options, RunResult};
use cohkit_protocol::construct;
use cohkit_protocol::text::parse;
use std::collections::BTreeSet;

const OUTER: &str = include_str!("../../../../protocols/mesi.coh");
const CPU: &str = include_str!("../../../../protocols/mesi-l1.coh");
const GPU: &str = include_str!("../../../../protocols/self-invalidate.coh");

/// Outcomes of a program with each thread in a cluster of `kind_of_thread`: 0 for the CPU's, 1 for the GPU's. There are
/// `clusters` of each kind.
fn outcomes(
    gpu: &str,
    program: &Program,
    (kind_of_thread, clusters): (&[usize], u8),
    evictions: u8,
) -> BTreeSet<Outcome> {
    let protocols = [OUTER, CPU, gpu].map(|text| parse(text).expect("a protocol file"));
    let home = |protocol| construct::home(protocol, 4).expect("the home can be constructed");
    let homes = protocols.each_ref().map(home);
    let relaxed = protocols[2].program_order.map(CoreKind::Relaxed);
    let kind = |number: usize, cores| ClusterKind {
        protocol: &protocols[number],
        home: &homes[number],
        max_clusters: Some(clusters),
        cores,
    };
    let kinds = [kind(1, Some(CoreKind::InOrder)), kind(2, relaxed)];
    let options = Options {
        max_spontaneous_evictions: evictions,
        ..Options::default()
    };
    let programs = std::slice::from_ref(program);
    let levels = (&protocols[0], &homes[0]);
    let result = run_on_clusters(
        levels,
        (&kinds, kind_of_thread),
        programs,
        &options,
        &mut || true,
    );
    match &result[..] {
        [RunResult::Outcomes { outcomes, .. }] => outcomes.clone(),
        other => panic!("{}: {other:?}", program.name),
    }
}

/// Outcomes that the compound model allows: each thread has the model of its cluster.
fn allowed(program: &Program, kind_of_thread: &[usize]) -> BTreeSet<Outcome> {
    let models = kind_of_thread
        .iter()
        .map(|&kind| [Model::Sc, Model::Rc][kind]);
    allowed_by_thread(program, &models.collect::<Vec<_>>()).expect("the program is small")
}

/// Every classic shape of two threads with one thread in each cluster shows outcomes of the compound model only. Most
/// show all of them; without evictions, a thread that reads a location twice hits its copy.
#[test]
fn two_threads_in_different_clusters_keep_the_compound_model() {
    let shapes = classic()
        .into_iter()
        .filter(|shape| shape.threads.len() == 2);
    let (mut shape_count, mut exact_count) = (0, 0);
    for shape in shapes {
        for kind_of_thread in [[0, 1], [1, 0]] {
            let (found, allowed) = (
                outcomes(GPU, &shape, (&kind_of_thread, 1), 0),
                allowed(&shape, &kind_of_thread),
            );
            let name = &shape.name;
            assert!(
                found.is_subset(&allowed),
                "{name} on {kind_of_thread:?}: {found:?}, and not only {allowed:?}"
            );
            shape_count += 1;
            exact_count += u32::from(found == allowed);
        }
    }
    assert_eq!((shape_count, exact_count), (140, 137));
}

/// Evictions show no further outcomes.
#[test]
fn evictions_in_clusters_keep_the_compound_model() {
    let shape = named("MP+popl+poap").expect("a classic shape");
    for kind_of_thread in [[0, 1], [1, 0], [1, 1]] {
        let found = outcomes(GPU, &shape, (&kind_of_thread, 2), 1);
        assert_eq!(
            found,
            allowed(&shape, &kind_of_thread),
            "{kind_of_thread:?}"
        );
    }
}

/// A cluster whose acquires keep its copies shows a stale value after message passing between clusters. The consumer
/// has read the data before, so it has a copy.
#[test]
fn acquire_that_keeps_copies_is_found() {
    let transition = "every V becomes I, every IV becomes IN\n";
    assert_eq!(GPU.matches(transition).count(), 1);
    let gpu = GPU.replace(transition, "every IV becomes IN\n");
    let warm = cohkit_litmus::warm_caches::named("MP+popl+poap+warm");
    let program = warm.expect("a shape whose caches have copies at first");
    let kind_of_thread = [0, 1];
    let allowed = allowed(&program, &kind_of_thread);
    assert!(outcomes(GPU, &program, (&kind_of_thread, 1), 0).is_subset(&allowed));
    assert!(!outcomes(&gpu, &program, (&kind_of_thread, 1), 0).is_subset(&allowed));
}
