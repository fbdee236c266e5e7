//! Search for all views of one cell that some configuration may have.

use cohkit_base::interner::Interner;
use cohkit_diagnostics::Span;
use cohkit_protocol::controller::{Controller, Effect, Event, Statement};
use cohkit_protocol::execute::{Configuration, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::Protocol;
use cohkit_system::data::Current;
use cohkit_system::state::{Line, Step, StepError, System, DEFAULT_CHANNEL_CAPACITY};

use crate::deadlock::DeadlockCandidate;
use crate::lift::LiftedHome;
use crate::obstacle::Obstacle;
use crate::representatives::{max_representatives, resolutions, CELLS, MAX_REMOTES};
use crate::supports::{Resolved, Supports, ViewKind};
use crate::view::{Form, Layout, Projection, State};
use crate::Limits;

/// Number of extensions between two calls of [`Limits::should_continue`].
const POLL_INTERVAL: u64 = 256;

/// Steps of the cell of a view.
#[derive(Clone, Copy)]
enum OwnSteps {
    /// All steps have been taken, for whatever other remotes.
    Taken {
        /// True if one of them is forced.
        has_forced: bool,
    },
    /// Some step changes more than the cell, so that the steps are taken in each extension.
    BeyondCell,
}

impl OwnSteps {
    /// Adds a step that has been taken.
    fn add(&mut self, is_forced: bool) {
        match self {
            OwnSteps::Taken { has_forced } => *has_forced |= is_forced,
            OwnSteps::BeyondCell => {}
        }
    }
}

/// Search in progress, with the views found so far.
pub(crate) struct Search<'p> {
    /// Translated home.
    home: &'p LiftedHome,
    /// Systems with 2, 3, ... remotes.
    systems: Vec<System<'p>>,
    /// Cuts and joins of views.
    pub(crate) projection: Projection<'p>,
    /// Views in the order of their discovery.
    pub(crate) views: Interner<State>,
    /// Homes of the views, without references.
    homes: Interner<Line<Current>>,
    /// For each view, the number of its home.
    home_of_view: Vec<u32>,
    /// Expanded views with each of these homes.
    views_by_home: Vec<Vec<u32>>,
    /// For each view, the steps of its cell, once they have been tried.
    own_steps: Vec<Option<OwnSteps>>,
    /// Extensions of constructed homes that wait for views.
    supports: Supports,
    /// Number of extensions.
    pub(crate) extensions: u64,
    /// Extensions in which no forced step may be possible.
    pub(crate) blocked: Vec<DeadlockCandidate>,
}

impl<'p> Search<'p> {
    /// Prepares a search.
    ///
    /// # Errors
    /// The home has too many sets.
    pub(crate) fn new(protocol: &'p Protocol, home: &'p LiftedHome) -> Result<Self, Obstacle> {
        let system = |remotes: usize| {
            let remotes = remotes as u16;
            System::new(
                protocol,
                &home.controller,
                remotes,
                1,
                DEFAULT_CHANNEL_CAPACITY,
            )
        };
        let systems: Vec<System> = (usize::from(CELLS)..=MAX_REMOTES).map(system).collect();
        let layout = Layout::new(home, &systems[0]);
        let is_deferral = |statement: &Statement| *statement == Statement::DeferStore;
        let mut rules = home.controller.rules.iter();
        let defers = rules.any(|rule| rule.has_statement(&is_deferral));
        let pointers = layout.pointers.len() + usize::from(defers);
        let representatives = max_representatives(layout.sets.len(), pointers, home);
        if usize::from(CELLS) + representatives > MAX_REMOTES {
            let reason = format!(
                "the sets of {} distinguish too many remotes",
                home.controller.name
            );
            return Err(Obstacle::at(home.controller.span, reason));
        }
        let idle = State::new(&systems[0]).lines[0].remotes[0].clone();
        Ok(Search {
            home,
            systems,
            projection: Projection {
                protocol,
                layout,
                idle,
            },
            views: Interner::default(),
            homes: Interner::default(),
            home_of_view: Vec::new(),
            views_by_home: Vec::new(),
            own_steps: Vec::new(),
            supports: Supports::default(),
            extensions: 0,
            blocked: Vec::new(),
        })
    }

    /// System with this many remotes.
    pub(crate) fn system(&self, remotes: usize) -> &System<'p> {
        &self.systems[remotes - usize::from(CELLS)]
    }

    /// Finds all views.
    ///
    /// # Errors
    /// A step of an extension that may violate a property or exceed a capacity, or a limit of the search.
    pub(crate) fn run(&mut self, limits: &mut Limits) -> Result<(), Obstacle> {
        let initial = State::new(self.system(usize::from(CELLS)));
        self.add_view(self.projection.cut(&initial, Form::Explicit, &[0]));
        let mut next = 0;
        while next < self.views.len() as u32 {
            let view = self.views[next].clone();
            let home = self.home_of_view[next as usize];
            self.views_by_home[home as usize].push(next);
            for other in self.views_by_home[home as usize].clone() {
                for extension in self.projection.join(&view, &self.views[other]) {
                    self.count_extension(limits)?;
                    self.expand([next, other], home, extension)?;
                }
                while let Some(resolved) = self.supports.next_ready() {
                    self.expand_resolved(resolved)?;
                }
            }
            next += 1;
        }
        Ok(())
    }

    /// Adds a view, if it is new.
    pub(crate) fn add_view(&mut self, view: State) {
        let (number, is_new) = self.views.add(view);
        if !is_new {
            return;
        }
        let view = &self.views[number];
        let (home, is_new) = self
            .homes
            .add(self.projection.home_without_references(view));
        if is_new {
            self.views_by_home.push(Vec::new());
        }
        self.home_of_view.push(home);
        self.own_steps.push(None);
        let layout = &self.projection.layout;
        if layout.blocks.is_some() {
            let kind = ViewKind::of(layout, home, &view.lines[0]);
            self.supports.add_found(layout, kind);
        }
    }

    /// Counts an extension.
    ///
    /// # Errors
    /// A limit of the search.
    fn count_extension(&mut self, limits: &mut Limits) -> Result<(), Obstacle> {
        if self.extensions >= limits.max_extensions {
            let reason = format!("more than {} pairs of remotes", limits.max_extensions);
            return Err(Obstacle::general(reason));
        }
        if let Some(should_continue) = &mut limits.should_continue {
            if self.extensions.is_multiple_of(POLL_INTERVAL) && !should_continue() {
                return Err(Obstacle::interrupted());
            }
        }
        self.extensions += 1;
        Ok(())
    }

    /// Checks an extension, and adds the views of its successors. An extension of a constructed home waits for views of
    /// the remotes outside.
    ///
    /// # Errors
    /// A violation or an exceeded capacity.
    fn expand(&mut self, views: [u32; 2], home: u32, extension: State) -> Result<(), Obstacle> {
        if self.projection.layout.blocks.is_some() {
            for state in resolutions(&self.projection, &extension, self.home)? {
                let resolved = Resolved {
                    views,
                    home,
                    extension: extension.clone(),
                    state,
                };
                self.supports.add(&self.projection.layout, resolved);
            }
            return Ok(());
        }
        self.check_properties(&extension)?;
        let is_forced = self.take_steps_of_cells(views, &extension)?;
        // Which remotes are outside matters only if the home can take a step.
        let remotes = extension.lines[0].remotes.len();
        let mut candidates = extension
            .steps_without_remotes(self.system(remotes))
            .into_iter();
        let mut is_blocked = !is_forced;
        if candidates.any(|step| !is_step_of_cell(&extension, step)) {
            is_blocked = false;
            for state in resolutions(&self.projection, &extension, self.home)? {
                let is_forced_here = self.take_steps_of_home(&state)?;
                is_blocked |= !is_forced && !is_forced_here;
            }
        }
        if is_blocked {
            let layout = &self.projection.layout;
            let candidate = DeadlockCandidate::new(layout, views, extension);
            self.blocked.push(candidate);
        }
        Ok(())
    }

    /// As [`Search::expand`], for an extension whose remotes outside have views.
    ///
    /// # Errors
    /// A violation or an exceeded capacity.
    fn expand_resolved(&mut self, resolved: Resolved) -> Result<(), Obstacle> {
        let Resolved {
            views,
            home: _,
            extension,
            state,
        } = resolved;
        self.check_properties(&extension)?;
        let is_forced = self.take_steps_of_cells(views, &extension)?;
        if !self.take_steps_of_home(&state)? && !is_forced {
            let layout = &self.projection.layout;
            let candidate = DeadlockCandidate::new(layout, views, extension);
            self.blocked.push(candidate);
        }
        Ok(())
    }

    /// Takes the steps of the cells of an extension. Returns true if one is forced.
    ///
    /// # Errors
    /// A violation or an exceeded capacity.
    fn take_steps_of_cells(
        &mut self,
        views: [u32; 2],
        extension: &State,
    ) -> Result<bool, Obstacle> {
        let mut is_forced = false;
        for (cell, view) in (0..).zip(views) {
            let own_steps = match self.own_steps[view as usize] {
                Some(own_steps) => own_steps,
                None => self.take_own_steps(view)?,
            };
            match own_steps {
                OwnSteps::Taken { has_forced } => is_forced |= has_forced,
                OwnSteps::BeyondCell => {
                    is_forced |= self.take_steps_of_cell(extension, cell)?;
                }
            }
        }
        Ok(is_forced)
    }

    /// Takes the steps of one cell of an extension. Returns true if one is forced.
    ///
    /// # Errors
    /// A violation or an exceeded capacity.
    fn take_steps_of_cell(&mut self, extension: &State, cell: u8) -> Result<bool, Obstacle> {
        let remotes = extension.lines[0].remotes.len();
        let mut is_forced = false;
        for step in extension.steps(self.system(remotes)) {
            if executing_remote(extension, step) == Some(cell) {
                is_forced |= self.take(extension, Form::Summarised, step)?;
            }
        }
        Ok(is_forced)
    }

    /// Takes the steps of the cell of a view, unless one of them changes more than the cell and its messages: a write of
    /// the line makes the copies of other remotes stale, and a store that the cell gives up may be one that the home
    /// has kept. Any other step changes the cell alone, whatever the other remotes are.
    ///
    /// # Errors
    /// A violation or an exceeded capacity.
    fn take_own_steps(&mut self, view: u32) -> Result<OwnSteps, Obstacle> {
        let mut state = self.views[view].clone();
        let remotes = state.lines[0].remotes.len();
        // The copy of the remote that stands for all others shows whether a step writes the line.
        state.lines[0].remotes[1].copy = true;
        let before = outside_cell(&state);
        let mut successors = Vec::new();
        let mut own_steps = OwnSteps::Taken { has_forced: false };
        for step in state.steps(self.system(remotes)) {
            if executing_remote(&state, step) != Some(0) {
                continue;
            }
            let Some(successor) = self.successor(&state, step)? else {
                continue;
            };
            if outside_cell(&successor) != before {
                own_steps = OwnSteps::BeyondCell;
                successors.clear();
                break;
            }
            own_steps.add(!step.spontaneous());
            successors.push(self.projection.cut(&successor, Form::Summarised, &[0]));
        }
        for successor in successors {
            self.add_view(successor);
        }
        self.own_steps[view as usize] = Some(own_steps);
        Ok(own_steps)
    }

    /// Takes the steps of the home of an extension with representatives. Returns true if one is forced.
    ///
    /// # Errors
    /// A violation or an exceeded capacity.
    fn take_steps_of_home(&mut self, state: &State) -> Result<bool, Obstacle> {
        let remotes = state.lines[0].remotes.len();
        let mut is_forced = false;
        for step in state.steps_without_remotes(self.system(remotes)) {
            if !is_step_of_cell(state, step) {
                is_forced |= self.take(state, Form::Explicit, step)?;
            }
        }
        Ok(is_forced)
    }

    /// Checks the properties of each pair of remotes.
    fn check_properties(&self, extension: &State) -> Result<(), Obstacle> {
        let mut pair = extension.clone();
        pair.lines[0].remotes.truncate(usize::from(CELLS));
        let claims = pair.claims(self.system(usize::from(CELLS)));
        claims.map_err(|violation| {
            let (protocol, line) = (self.projection.protocol, &extension.lines[0]);
            let state = |cell: usize| {
                let state = line.remotes[cell].configuration.state;
                &protocol.remote.states[usize::from(state)]
            };
            let home_state = &self.home.controller.states[usize::from(line.home.state)];
            let reason = format!(
                "{}: {}, for remotes in `{}` and `{}` and the home in `{}`",
                violation.property,
                violation.description,
                state(0).name,
                state(1).name,
                home_state.name
            );
            Obstacle::at(state(0).span, reason)
        })
    }

    /// Takes a step of a state in a form, and adds the views of the successor. Returns true if the step is possible and
    /// forced.
    ///
    /// # Errors
    /// A violation or an exceeded capacity.
    fn take(&mut self, state: &State, form: Form, step: Step) -> Result<bool, Obstacle> {
        let Some(successor) = self.successor(state, step)? else {
            return Ok(false);
        };
        for cell in 0..CELLS {
            let view = self.projection.cut(&successor, form, &[cell]);
            self.add_view(view);
        }
        Ok(!step.spontaneous())
    }

    /// Successor of a state by a step; `None` if the step is not possible.
    ///
    /// # Errors
    /// A violation or an exceeded capacity.
    fn successor(&self, state: &State, step: Step) -> Result<Option<State>, Obstacle> {
        let remotes = state.lines[0].remotes.len();
        let mut successor = state.clone();
        match successor.take(self.system(remotes), step) {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(error) => {
                let reason = match error {
                    StepError::Violated(violation) => {
                        format!("{}: {}", violation.property, violation.description)
                    }
                    StepError::Exceeded(limit) => limit,
                };
                return Err(Obstacle::at(self.row_of(state, step, remotes), reason));
            }
        }
        for (flag, obstacle) in &self.home.obligations {
            let slot = self.system(remotes).slots_of_home(flag.0).start;
            if successor.lines[0].home.slots[slot] != 0 {
                let span = Some(self.row_of(state, step, remotes));
                let reason = obstacle.reason.clone();
                return Err(Obstacle { reason, span });
            }
        }
        Ok(Some(successor))
    }

    /// Span of the row that a step runs, or of the state in which no row applies.
    fn row_of(&self, state: &State, step: Step, remotes: usize) -> Span {
        let (line, protocol) = (&state.lines[0], self.projection.protocol);
        let home = (&self.home.controller, &line.home);
        let remote = |remote: u8| {
            let configuration = &line.remotes[usize::from(remote)].configuration;
            (&protocol.remote, configuration)
        };
        let ((controller, configuration), event, sender, executing) = match step {
            Step::Access(_, number, access) => {
                (remote(number), Event::Access(access), None, Some(number))
            }
            Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => {
                let Some(flight) = state.network.at(arrival) else {
                    return self.home.controller.span;
                };
                let event = Event::Message(flight.message);
                let agent = flight.to.map_or(home, remote);
                (agent, event, flight.from, flight.to)
            }
            Step::Local(_) => {
                let local = line.requested.unwrap_or_default();
                (home, Event::Local(local), None, None)
            }
            Step::Unlock(_) => (home, Event::Unlock, None, None),
            Step::MemoryData(_, choice) => (home, Event::MemoryData(choice), None, None),
            Step::MemoryDone(_) => (home, Event::MemoryDone, None, None),
            Step::Hit(..)
            | Step::StallAtHead(_)
            | Step::MemoryOperation(_)
            | Step::RequestLocal(..)
            | Step::DeviceWrite(_)
            | Step::RaiseBacking(..)
            | Step::LowerBacking(..)
            | Step::ExternalWrite(_) => return self.home.controller.span,
        };
        let trigger = Trigger {
            event,
            sender: sender.map(u16::from),
            executing_remote: executing.map(u16::from),
            home: 0,
            fields: &[],
        };
        row_span(controller, configuration, trigger, remotes)
    }
}

/// True if a cell executes the step; false for the steps of the home and of the remote that stands for the others.
fn is_step_of_cell(state: &State, step: Step) -> bool {
    executing_remote(state, step).is_some_and(|remote| remote < CELLS)
}

/// The line without its first remote: home, memory and the other remotes.
fn outside_cell(state: &State) -> Line<Current> {
    let mut line = Line::clone(&state.lines[0]);
    line.remotes.remove(0);
    line
}

/// The remote that executes a step; `None` for the home, memory and the device.
fn executing_remote(state: &State, step: Step) -> Option<u8> {
    match step {
        Step::Access(_, remote, _) | Step::Hit(_, remote) => Some(remote),
        Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => {
            state.network.at(arrival).and_then(|flight| flight.to)
        }
        Step::StallAtHead(_)
        | Step::MemoryOperation(_)
        | Step::MemoryData(..)
        | Step::MemoryDone(_)
        | Step::RequestLocal(..)
        | Step::Local(_)
        | Step::Unlock(_)
        | Step::DeviceWrite(_)
        | Step::RaiseBacking(..)
        | Step::LowerBacking(..)
        | Step::ExternalWrite(_) => None,
    }
}

/// Span of the row that an agent takes, or of its state if no row applies. A row that cannot be executed is the first
/// one for its event.
fn row_span(
    controller: &Controller,
    configuration: &Configuration,
    trigger: Trigger,
    remotes: usize,
) -> Span {
    let machine = Machine::new(controller, remotes as u16);
    let mut tables = controller;
    let mut next = configuration.clone();
    if let Ok(Outcome::Taken { rule, .. }) = machine.step(&mut next, trigger, &mut tables) {
        return controller.rules[rule].span;
    }
    let mut rules = controller.rules.iter();
    let row = rules.find(|rule| {
        rule.state.0 == configuration.state
            && rule.event == trigger.event
            && matches!(rule.effect, Effect::Take { .. })
    });
    match row {
        Some(rule) => rule.span,
        None => controller.states[usize::from(configuration.state)].span,
    }
}
