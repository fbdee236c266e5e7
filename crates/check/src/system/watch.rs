//! Additional state variables of a model that watches progress.

use cohkit_engine::model::{TableId, VariableId};
use cohkit_protocol::controller::{Access, Controller, Event};

/// A kind of access, or a local operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An access of a remote.
    Access(Access),
    /// A local operation of the device: index into [`Controller::locals`].
    Local(u8),
}

impl Kind {
    /// Its name in the protocol file.
    pub fn name(self, home: &Controller) -> &str {
        match self {
            Kind::Access(access) => access.name(),
            Kind::Local(index) => (home.locals.get(usize::from(index)))
                .map_or("local operation", |local| local.name.as_str()),
        }
    }
}

/// State variables for one kind of access or operation.
#[derive(Clone, Copy)]
pub(super) struct Watch {
    pub kind: Kind,
    pub wanted: VariableId,
    /// The watched remote, if an access is watched.
    pub remote: Option<WatchedRemote>,
}

/// State variables of the watched remote.
#[derive(Clone, Copy)]
pub(super) struct WatchedRemote {
    pub remote: VariableId,
    pub outstanding: VariableId,
    /// Per state a goal, see [`super::progress`].
    pub goal: TableId,
}

impl Watch {
    /// True if rows for this event begin the watched access.
    pub fn begins(&self, event: Event) -> bool {
        matches!(self.kind, Kind::Access(access) if event == Event::Access(access))
    }

    /// The watched remote.
    pub fn which(&self) -> Option<VariableId> {
        self.remote.map(|remote| remote.remote)
    }
}
