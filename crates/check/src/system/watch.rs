//! What a model says besides of the access or operation whose progress is watched.

use cohkit_engine::model::{TableId, VariableId};
use cohkit_protocol::controller::{Access, Controller, Event};

/// A kind of access, or of local operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Of a remote.
    Access(Access),
    /// Of the device behind the home: index into [`Controller::locals`].
    Local(u8),
}

impl Kind {
    /// The name in the text.
    pub fn name(self, home: &Controller) -> &str {
        match self {
            Kind::Access(access) => access.name(),
            Kind::Local(index) => (home.locals.get(usize::from(index)))
                .map_or("local operation", |local| local.name.as_str()),
        }
    }
}

/// What a model says besides of one kind of access or operation.
#[derive(Clone, Copy)]
pub(super) struct Watch {
    pub kind: Kind,
    pub wanted: VariableId,
    /// Of accesses alone.
    pub remote: Option<Watched>,
}

/// What a model says besides of one remote.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    pub which: VariableId,
    pub under_way: VariableId,
    /// For each state a goal, see [`super::progress`].
    pub goal: TableId,
}

impl Watch {
    /// Whether rows for this event begin what is watched.
    pub fn begins(&self, event: Event) -> bool {
        matches!(self.kind, Kind::Access(access) if event == Event::Access(access))
    }

    /// The remote that is watched.
    pub fn which(&self) -> Option<VariableId> {
        self.remote.map(|remote| remote.which)
    }
}
