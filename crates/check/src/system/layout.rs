//! State variables of a system, as components that each own some of them.

use cohkit_engine::model::{Deadlock, Expr, Model, Stmt, VariableId};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_system::stores::ranks;
use std::rc::Rc;

use super::agents::Agents;
use super::backing_permission::BackingPermission;
use super::channels::Channels;
use super::copies::Copies;
use super::device::Device;
use super::frame::Frame;
use super::memory::Memory;
use super::options::{Options, SystemError};
use super::stores::PendingStores;
use super::tickets::StoreVariables;
use super::watch::Watch;

/// The components of a system.
pub(super) struct Layout<'p> {
    /// Protocol, sizes and types, and the model under construction.
    pub frame: Rc<Frame<'p>>,
    /// States and variables of remotes and home.
    pub agents: Rc<Agents<'p>>,
    /// Messages in flight.
    pub channels: Rc<Channels<'p>>,
    /// Stores that are sent and not yet performed.
    pub stores: Rc<PendingStores<'p>>,
    /// Copies of the lines in caches and memory.
    pub copies: Copies<'p>,
    /// Device behind the home; `None` if the home has no local operations.
    pub device: Option<Device<'p>>,
    /// Permission that an outer level grants to the home. Exists only with [`Options::parent_any`].
    pub backing_permission: BackingPermission<'p>,
    /// Access or operation whose progress is watched, if any. Set before rules are added.
    pub watch: Option<Watch<'p>>,
    /// Variable that holds the remote whose accesses must always be able to begin again, if that is checked.
    pub restarts: Option<VariableId>,
}

impl<'p> Layout<'p> {
    /// Declares the state variables of a system. The sizes have been checked.
    ///
    /// # Errors
    /// A row sends a message from the home to itself.
    pub fn new(
        protocol: &'p Protocol,
        home: &'p Controller,
        remotes_by_kind: Remotes,
        lines: u8,
        options: &'p Options,
    ) -> Result<Layout<'p>, SystemError> {
        let frame = Rc::new(Frame::new(protocol, home, remotes_by_kind, lines, options));
        let agents = Rc::new(Agents::new(&frame, home));
        let ranks = ranks(options.effective_capacity(), frame.facts.line_order);
        let memory = Memory::new(&frame, ranks);
        let device = Device::new(&frame, home);
        let backing_permission = BackingPermission::new(&agents);
        let variables = StoreVariables::new(&frame, agents.remote.states, ranks);
        let channels = Rc::new(Channels::new(&frame, home, ranks)?);
        let (deferred_store, remote_state) = (memory.deferred_store, agents.remote.state);
        let stores = PendingStores::new(&channels, variables, deferred_store, remote_state);
        let stores = Rc::new(stores);
        Ok(Layout {
            copies: Copies::new(&channels, &stores, memory),
            frame,
            agents,
            channels,
            stores,
            device,
            backing_permission,
            watch: None,
            restarts: None,
        })
    }

    /// Asserts that the device's lock has none of these levels (constants of [`super::device::lock`]). `message`
    /// describes the violation of *single writer*. `None` if there is no device that can lock lines.
    pub fn assert_unlocked(&self, line: &Expr, levels: &[u32], message: &str) -> Option<Stmt> {
        let device = self.device.as_ref()?;
        device.assert_unlocked(line, levels, message)
    }

    /// Adds the start states, and returns the finished model.
    ///
    /// # Errors
    /// Something could not be lowered, or the model is not well formed.
    pub fn finish(self) -> Result<Model, SystemError> {
        let frame = &self.frame;
        let (line, _) = frame.line_parameter();
        // A home without backing permission has no copy.
        let mut begin = match self.backing_permission.exists() {
            true => Vec::new(),
            false => vec![self.copies.memory.current.at(line).set(true)],
        };
        begin.extend(self.agents.initialize_line(line.into()));
        begin.extend((self.backing_permission).set_memory_writes(&line.into(), false));
        let mut body = vec![line.each(begin)];
        let watched = self.watch.as_ref().and_then(Watch::watched_remote);
        let mut parameters = Vec::new();
        if let Some(watched) = watched.or(self.restarts) {
            let parameter = frame.scope.parameter("watched remote", frame.remote_type);
            body.push(watched.set(parameter));
            parameters.push(parameter);
        }
        frame.scope.with_builder(|build| {
            build.starts("reset", parameters, body);
            build.deadlock(match build.model().quiescent {
                Some(_) => Deadlock::ExceptQuiescent,
                None => Deadlock::Off,
            });
        });
        frame.scope.finish(frame.remote_type)
    }
}
