//! Verdicts on a protocol for every number of remotes, by view abstraction.
//!
//! [`verify`] decides whether the properties hold for one line and every number of remotes. It computes all *views* of
//! one cell that any configuration may have: the home, one remote with its messages, and for each set of the home
//! whether some other remote is in it. Homes written as goals are constructed; a view of theirs has the knowledge of
//! the cell, and the kinds of knowledge that occur of other remotes. Two views at a time are joined, and the pair takes
//! each possible step in the executor of ordinary systems ([`cohkit_system::state`]). When no step gives a new view,
//! the properties hold for every number of remotes.
//!
//! The verdict is [`Verdict::Verified`] or [`Verdict::Undecided`], never "violated": a view that no configuration has
//! may be a false alarm. A construct that views do not model is refused, with its place in the file.
//! `docs/any-number.md` argues the soundness.
//!
//! Properties: single writer, data value, no unexpected message, the invariants of the file, no channel that exceeds
//! its capacity, and freedom from deadlock. Progress of single accesses is not covered.
//!
//! The crate does not know finite models or their search: it uses neither `check` nor `engine`.
//!
//! ```
//! use cohkit_parameterised::{verify, Limits, Verdict};
//! use cohkit_protocol::text::parse;
//!
//! let protocol = parse(include_str!("../../../protocols/write-through.coh")).expect("the file has no errors");
//! let Verdict::Verified(proof) = verify(&protocol, &mut Limits::default()) else { panic!("undecided") };
//! assert_eq!(proof.views.len(), 102);
//!
//! // The caches of MSI send data to each other, which views of one cache do not show.
//! let msi = parse(include_str!("../../../protocols/msi.coh")).expect("the file has no errors");
//! assert!(matches!(verify(&msi, &mut Limits::default()), Verdict::Undecided(_)));
//! ```

mod blocks;
mod constructed;
mod deadlock;
mod homes;
mod lift;
mod obstacle;
mod one_remote;
mod representatives;
mod restrictions;
mod search;
mod supports;
mod view;
mod witnesses;

use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_system::data::Current;
use cohkit_system::state::SystemState;

use deadlock::deadlock;
use lift::LiftedHome;
pub use obstacle::Obstacle;
use one_remote::check_one_remote;
use search::Search;

/// Verdict for every number of remotes.
pub enum Verdict {
    /// The properties hold for every number of remotes.
    Verified(Proof),
    /// The abstraction does not decide, for this reason.
    Undecided(Obstacle),
}

/// Evidence for a verdict: a set of views that contains the initial one, and that no step of a pair leaves.
#[derive(Clone)]
pub struct Proof {
    /// Home whose variables the views have. Its first variables are those of the file, with sets in place of counts;
    /// ghosts follow.
    pub home: Controller,
    /// Views of one remote. Remote 0 is the cell, and remote 1 stands for all others.
    ///
    /// If the home is constructed, its slots have another form: all variables except the knowledge of remotes, then the
    /// knowledge index of the cell, and then a bit for each block that contains the index of some other remote, 16 bits
    /// a slot. Its pointer is 0 for none, 1 for the cell, and 2 plus the block of the other remote that it names.
    pub views: Vec<SystemState<Current>>,
    /// Block of each knowledge index of a constructed home; empty for a home written as rows.
    pub blocks: Vec<u16>,
    /// Number of pairs of remotes whose steps were taken.
    pub extensions: u64,
    /// The home as the search used it.
    lifted: Box<LiftedHome>,
}

impl Proof {
    /// Returns true if the views contain the initial one, no step of a pair leaves them, and no pair violates a
    /// property. This search begins with all views, in whatever order they were found.
    pub fn is_closed(&self, protocol: &Protocol) -> bool {
        let Ok(mut search) = Search::new(protocol, &self.lifted) else {
            return false;
        };
        for view in &self.views {
            search.add_view(view.clone());
        }
        let result = search.run(&mut Limits::default());
        result.is_ok() && search.views.len() == self.views.len()
    }
}

/// Limits of a search.
pub struct Limits<'l> {
    /// Maximum number of pairs of remotes.
    pub max_extensions: u64,
    /// Returns false to cancel the search, if there is a function. It is called every 256 pairs, every 256 states of
    /// one remote with its home, and during the construction of a home.
    pub should_continue: Option<&'l mut dyn FnMut() -> bool>,
}

impl Default for Limits<'_> {
    /// At most two million pairs, which take some minutes, and no cancellation.
    fn default() -> Self {
        Limits {
            max_extensions: 2_000_000,
            should_continue: None,
        }
    }
}

/// Decides whether the properties hold for one line and every number of remotes.
pub fn verify(protocol: &Protocol, limits: &mut Limits) -> Verdict {
    match prove(protocol, limits) {
        Ok(proof) => Verdict::Verified(proof),
        Err(obstacle) => Verdict::Undecided(obstacle),
    }
}

/// As [`verify`].
///
/// # Errors
/// The reason for which the abstraction does not decide.
fn prove(protocol: &Protocol, limits: &mut Limits) -> Result<Proof, Obstacle> {
    restrictions::check_protocol(protocol)?;
    let homes = homes::homes(protocol, limits)?;
    let home = &homes.several_remotes;
    let is_constructed = matches!(protocol.home, Home::Policy(_));
    let lifted = match is_constructed {
        true => constructed::lift_constructed(home)?,
        false => lift::lift(protocol, home, false)?,
    };
    check_one_remote(protocol, &homes.one_remote, limits)?;
    // Most homes need no ghost, and have fewer views without it.
    match find_views(protocol, lifted, limits) {
        Ok(proof) => Ok(proof),
        Err(obstacle) if is_constructed || obstacle == Obstacle::interrupted() => Err(obstacle),
        Err(obstacle) => {
            let lifted = lift::lift(protocol, home, true)?;
            let second_attempt = find_views(protocol, lifted, limits);
            second_attempt.map_err(|second| match second == Obstacle::interrupted() {
                true => second,
                false => obstacle,
            })
        }
    }
}

/// Finds all views of a protocol with a translated home, and checks them.
///
/// # Errors
/// The reason for which the abstraction does not decide.
fn find_views(
    protocol: &Protocol,
    lifted: LiftedHome,
    limits: &mut Limits,
) -> Result<Proof, Obstacle> {
    let mut search = Search::new(protocol, &lifted)?;
    search.run(limits)?;
    let blocked = std::mem::take(&mut search.blocked);
    if let Some(state) = deadlock(search.system(3), blocked, search.views.len()) {
        let line = &state.lines[0];
        let home_state = &lifted.controller.states[usize::from(line.home.state)];
        let remote_state = |cell: usize| {
            let state = line.remotes[cell].configuration.state;
            &protocol.remote.states[usize::from(state)].name
        };
        let reason = format!(
            "no deadlock: possibly nothing is taken with remotes in `{}` and `{}` and the home in `{}`",
            remote_state(0),
            remote_state(1),
            home_state.name
        );
        return Err(Obstacle::at(home_state.span, reason));
    }
    let (views, extensions) = (search.views.into_values(), search.extensions);
    let blocks = lifted.blocks.as_ref();
    Ok(Proof {
        home: lifted.controller.clone(),
        views,
        blocks: blocks.map_or(Vec::new(), |blocks| blocks.block_of.clone()),
        extensions,
        lifted: Box::new(lifted),
    })
}
