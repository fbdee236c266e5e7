//! Execution contexts of remote and home rows.

use super::*;

/// Environment of a remote.
pub(super) struct WorldRemoteContext<'w, 's, 'p, D: Data> {
    pub(super) world: &'w mut World<D>,
    pub(super) system: &'s System<'p>,
    pub(super) line: u8,
    pub(super) remote: u8,
    pub(super) extent: Extent,
    /// Relation of the next message with the remote's store to that store.
    pub(super) send: StoreSend,
    /// True if the row performs a store in the remote's own copy, without `done`.
    pub(super) in_place: bool,
    /// True if the current message carries a copy.
    pub(super) brings: bool,
    pub(super) ended: &'w mut Vec<CompletedAccess<D>>,
    /// Transitions of all lines of the remote, applied after the row.
    pub(super) every: Vec<(StateId, StateId)>,
}

impl<D: Data> WorldRemoteContext<'_, '_, '_, D> {
    fn place(&mut self) -> &mut crate::world::Remote<D> {
        &mut self.world.line(self.line).remotes[usize::from(self.remote)]
    }

    /// Returns the ticket of a store that is sent.
    fn ticket(&mut self) -> Result<Ticket, Wrong> {
        let (facts, room) = (&self.system.facts, self.system.room);
        let send = self.send.take();
        let place = &mut self.place().stores;
        if !facts.stores_pending {
            return Ok(Ticket::VOID);
        }
        if send == StoreSend::Posted {
            let rank = place.posted;
            if facts.line_order {
                let ranks = stores::ranks(room, true);
                if rank >= ranks {
                    let over = format!("more than {ranks} posted stores are pending");
                    return Err(Wrong::Exceeded(over));
                }
                place.posted += 1;
            }
            return Ok(Ticket::posted(rank));
        }
        Ok(match place.performed || send == StoreSend::Repeated {
            true => Ticket::VOID,
            false => Ticket::AWAITED,
        })
    }

    fn ends(&mut self, found: Option<D::Copy>) {
        self.ended.push(CompletedAccess {
            line: self.line,
            remote: self.remote,
            found,
        });
    }
}

impl<D: Data> RemoteContext for WorldRemoteContext<'_, '_, '_, D> {
    type Copy = D::Copy;
    type Wrong = Wrong;

    fn current(&self, copy: &D::Copy) -> bool {
        self.world.data.current(self.line, copy)
    }

    fn send(&mut self, sending: Sending<D::Copy>) -> Result<(), Wrong> {
        let store = match sending.bytes {
            Bytes::Write => {
                let ticket = self.ticket()?;
                (self.place().writes.clone().unwrap_or_default(), ticket)
            }
            _ => Default::default(),
        };
        let from = Some(self.remote);
        (self.world).send(self.system, self.line, from, store, sending)
    }

    fn write(&mut self, on: &D::Copy) -> Result<D::Copy, Wrong> {
        if !self.in_place {
            self.world
                .check_program_order(self.line, self.remote, true)?;
        }
        let what = self.place().writes.take().unwrap_or_default();
        self.ends(Some(on.clone()));
        Ok(self
            .world
            .write(self.system, self.line, on, self.extent, &what))
    }

    fn read(&mut self, copy: &D::Copy) -> Result<(), Wrong> {
        if !self.brings {
            self.world
                .check_program_order(self.line, self.remote, false)?;
        }
        self.ends(Some(copy.clone()));
        Ok(())
    }

    fn written(&mut self, found: Option<&D::Copy>) -> Result<(), Wrong> {
        let facts = &self.system.facts;
        let place = self.place();
        place.writes = None;
        let before = place.found.take();
        if facts.stores_pending && !std::mem::take(&mut place.stores.performed) {
            let what = "a write completes although the home has not performed it";
            return Err(Violation::new(agent::stores(facts), what).into());
        }
        self.ends(found.cloned().or(before));
        Ok(())
    }

    // The caller handles the abandoned write after the row.
    fn gives_up(&mut self) {}

    fn every(&mut self, from: StateId, to: StateId) -> Result<(), Wrong> {
        self.every.push((from, to));
        Ok(())
    }
}

/// Environment of a home.
pub(super) struct WorldHomeContext<'w, 's, 'p, D: Data> {
    pub(super) world: &'w mut World<D>,
    pub(super) system: &'s System<'p>,
    pub(super) line: u8,
    /// The store of the current message.
    pub(super) taking: Option<ConsumedStore>,
    /// Ticket of the deferred store that is about to be performed.
    pub(super) deferred: Option<Ticket>,
}

/// A store whose message a home consumes.
#[derive(Clone, Copy)]
pub(super) struct ConsumedStore {
    ticket: Ticket,
    /// True if its bytes have been deferred.
    deferred: bool,
}

impl ConsumedStore {
    pub(super) fn new(ticket: Ticket) -> ConsumedStore {
        ConsumedStore {
            ticket,
            deferred: false,
        }
    }

    /// True if the store is pending, and no agent has its bytes after the row.
    pub(super) fn loses(self) -> bool {
        self.ticket.is_posted() && !self.deferred
    }
}

impl<D: Data> WorldHomeContext<'_, '_, '_, D> {
    fn place(&mut self) -> &mut Line<D> {
        self.world.line(self.line)
    }
}

impl<D: Data> HomeContext for WorldHomeContext<'_, '_, '_, D> {
    type Copy = D::Copy;
    type Wrong = Wrong;

    fn current(&self, copy: &D::Copy) -> bool {
        self.world.data.current(self.line, copy)
    }

    fn mark_stale(&self, copy: &D::Copy) -> D::Copy {
        match self.system.facts.coherent {
            true => D::mark_stale(copy),
            false => copy.clone(),
        }
    }

    fn send(&mut self, sending: Sending<D::Copy>) -> Result<(), Wrong> {
        let store = Default::default();
        (self.world).send(self.system, self.line, None, store, sending)
    }

    fn memory(&self) -> D::Copy {
        self.world.lines[usize::from(self.line)].memory.clone()
    }

    fn set_memory(&mut self, copy: &D::Copy) -> Result<(), Wrong> {
        self.world.may_write(self.line)?;
        self.place().memory = copy.clone();
        Ok(())
    }

    fn lock(&self) -> Right {
        match self.world.lines[usize::from(self.line)].lock {
            Lock::Held(right) => right,
            Lock::Open | Lock::GivenBack => Right::None,
        }
    }

    fn store(&mut self, from: Option<u8>, whole: bool) -> Result<(), Wrong> {
        let deferred = self.deferred.take();
        let ticket = deferred.or(self.taking.map(|taking| taking.ticket));
        if let (true, Some(remote)) = (self.system.facts.stores_pending, from) {
            let ticket = ticket.unwrap_or_default();
            (self.world).performs(self.system, self.line, remote, ticket)?;
            // A store that this row has deferred is recorded at two places until the row ends.
            let own = self.taking.is_some_and(|taking| taking.deferred);
            if let (true, Some(taking)) = (own || deferred.is_none(), &mut self.taking) {
                taking.ticket = Ticket::VOID;
            }
            if let (true, Some(aside)) = (own, &mut self.place().aside) {
                aside.ticket = Ticket::VOID;
            }
        }
        let what = self.place().kept.take().unwrap_or_default();
        self.world
            .store_to_memory(self.system, self.line, whole, &what)
    }

    fn defer_write(&mut self, from: Option<u8>, whole: bool) -> Result<(), Wrong> {
        let wrong = |what: &str| Err(Violation::new("one deferred store at a time", what).into());
        let ticket = self.taking.as_mut().map(|taking| {
            taking.deferred = true;
            taking.ticket
        });
        let ticket = ticket.unwrap_or_default();
        let place = self.place();
        match (from, &place.aside) {
            (Some(from), None) => {
                let what = place.kept.take().unwrap_or_default();
                place.aside = Some(SetAside {
                    from,
                    whole,
                    what,
                    ticket,
                });
                Ok(())
            }
            (None, _) => wrong("the home defers a store that no remote has sent"),
            (_, Some(_)) => wrong("the home defers a store while another store is deferred"),
        }
    }

    fn take_deferred_write(&mut self) -> Result<(Option<u8>, bool), Wrong> {
        let place = self.place();
        match place.aside.take() {
            Some(SetAside {
                from,
                whole,
                what,
                ticket,
            }) => {
                place.kept = D::KEEPS_VALUES.then_some(what);
                self.deferred = Some(ticket);
                Ok((Some(from), whole))
            }
            None => {
                let what = "the home writes a deferred store, but no store is deferred";
                Err(Violation::new("one deferred store at a time", what).into())
            }
        }
    }

    fn start(&mut self, wish: MemoryOp<D::Copy>) -> Result<(), Wrong> {
        let place = self.place();
        if place.operation != Operation::Idle {
            return Err(Violation::new(
                "memory operation while the slot is busy",
                "the home starts a memory operation while another one is in progress",
            )
            .into());
        }
        place.operation = match wish {
            MemoryOp::Read => Operation::Read,
            MemoryOp::Write(copy) => Operation::Write(copy),
            MemoryOp::Store { whole } => {
                let what = place.kept.take().unwrap_or_default();
                Operation::Store { whole, what }
            }
        };
        Ok(())
    }

    fn acknowledge(&mut self, local: u8) -> Result<(), Wrong> {
        let about = &self.system.home.locals[usize::from(local)];
        let system = self.system;
        let place = self.place();
        if place.accepted.take() != Some(local) {
            let name = &about.name;
            return Err(Violation::new(
                "one local operation at a time",
                format!("the home acknowledges {name}, which it has not accepted"),
            )
            .into());
        }
        let name = &about.name;
        let rights = place.remotes.iter().map(|r| system.right(&r.configuration));
        if rights.max() > Some(about.ensures) {
            let what = format!(
                "a remote still has a permission that it must not have when {name} is acknowledged"
            );
            return Err(Violation::new("single writer", what).into());
        }
        let memory = place.memory.clone();
        let locked = place.lock != Lock::Open;
        if !self.current(&memory) {
            let what = format!("memory is stale when {name} is acknowledged");
            return Err(Violation::data_value(what).into());
        }
        if about.locks {
            if locked {
                let what = "the home locks a line that is locked";
                return Err(Violation::new("lock", what).into());
            }
            self.place().lock = Lock::Held(match about.ensures {
                Right::None => Right::Write,
                _ => Right::Read,
            });
        }
        Ok(())
    }

    fn unlocked(&mut self) {
        self.place().lock = Lock::Open;
    }
}
