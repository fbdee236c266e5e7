//! Calls of functions: their arguments, and the instructions that they emit.

use cohkit_diagnostics::suggestion;

use super::functions::{function, takes_object, Function, ReturnedValue, FUNCTIONS, SUBTRACT};
use super::order::Order;
use super::reader::{Reader, MAX_DEPTH};
use crate::piece::{error_at, error_with_help, Piece, Result};
use crate::program::{
    location_at, Address, Change, Fence, Instruction, Operand, Operation, Register, StoreVariant,
};

impl<'t> Reader<'_, 't> {
    /// Parses a memory order.
    fn order(&mut self) -> Result<(Piece<'t>, Order)> {
        let token = self.name("an order")?;
        let order = Order::ALL.iter().find(|(name, _)| *name == token.text);
        match order {
            Some((_, order)) => Ok((token, *order)),
            None => {
                let message = format!("`{}` is no order that is supported here", token.text);
                let names = Order::ALL.iter().map(|(name, _)| *name);
                error_with_help(token, message, suggestion(token.text, "order", names))
            }
        }
    }

    /// Parses the arguments of a function, and emits its instructions.
    pub(super) fn call(
        &mut self,
        name: Piece<'t>,
        depth: usize,
        target: Option<Register>,
    ) -> Result<Operand> {
        let Some((function, has_order)) = function(name.text) else {
            return self.reject_function(name);
        };
        if depth > MAX_DEPTH {
            return error_at(name, "there are too many parts within each other");
        }
        let nothing = Ok(Operand::Number(0));
        let is_macro = takes_object(name.text);
        self.expect("(")?;
        match function {
            Function::NoEffect => self.expect(")").and(nothing),
            Function::Rcu(operation) => {
                self.expect(")")?;
                match self.has_grace_period {
                    true => self.emit(name, Instruction::Rcu(operation)).and(nothing),
                    false => nothing,
                }
            }
            Function::Fence(fence) => {
                self.expect(")")?;
                self.emit(name, Instruction::Fence(fence)).and(nothing)
            }
            Function::FenceWithOrder => self.fence_with_order(name),
            Function::Load(order) => {
                let from = self.location_argument(depth, is_macro)?;
                let forbidden = [Order::Release, Order::AcquireRelease];
                let order = self.last_order(has_order, order, (name, &forbidden))?;
                self.load(name, from, order, target)
            }
            Function::Store(order) => {
                let to = self.location_argument(depth, is_macro)?;
                self.expect(",")?;
                let value = self.expression(0, depth + 1, None)?;
                let forbidden = [Order::Acquire, Order::AcquireRelease];
                let order = self.last_order(has_order, order, (name, &forbidden))?;
                self.store(name, to, value, order).and(nothing)
            }
            Function::StoreFence => self.store_fence(name, depth),
            Function::Update(change, order, returned_value) => {
                let order = (has_order, order);
                self.update_call(name, depth, change, order, returned_value, target)
            }
            Function::AddConstant(amount, order, returned_value) => {
                let address = self.location_argument(depth, false)?;
                self.expect(")")?;
                let change = (address, Change::FetchAdd, Operand::Number(amount));
                self.update(name, change, order, returned_value, target)
            }
            Function::CompareExchange(order) => self.compare_exchange(name, depth, order, target),
            Function::C11CompareExchange(order) => {
                self.c11_compare_exchange(name, depth, has_order, order)
            }
            Function::AddUnless => self.add_unless_call(name, depth),
            Function::IncrementNotZero => {
                let address = self.location_argument(depth, is_macro)?;
                self.expect(")")?;
                self.add_unless(name, address, Operand::Number(1), Operand::Number(0))
            }
            Function::Lock | Function::TryLock => self.lock(name, depth, function),
            Function::Unlock => {
                let address = self.location_argument(depth, is_macro)?;
                self.expect(")")?;
                let free = Operand::Number(0);
                self.store(name, address, free, Order::Release).and(nothing)
            }
        }
    }

    /// Parses the order of a fence, and emits the fence.
    fn fence_with_order(&mut self, name: Piece<'t>) -> Result<Operand> {
        let nothing = Ok(Operand::Number(0));
        let (_, order) = self.order()?;
        self.expect(")")?;
        let fence = match order {
            Order::Relaxed => return nothing,
            Order::Acquire => Fence::Loads,
            Order::Release | Order::AcquireRelease | Order::Sequential => Fence::Full,
        };
        self.emit(name, Instruction::Fence(fence)).and(nothing)
    }

    /// Parses the arguments of `smp_store_mb`, and emits the store and its fence.
    fn store_fence(&mut self, name: Piece<'t>, depth: usize) -> Result<Operand> {
        let to = self.location_argument(depth, takes_object(name.text))?;
        self.expect(",")?;
        let value = self.expression(0, depth + 1, None)?;
        self.expect(")")?;
        self.store(name, to, value, Order::Relaxed)?;
        self.emit(name, Instruction::Fence(Fence::Full))
            .and(Ok(Operand::Number(0)))
    }

    /// Parses the arguments of an atomic read and write with an operand, and emits the access.
    fn update_call(
        &mut self,
        name: Piece<'t>,
        depth: usize,
        change: Change,
        (has_order, order): (bool, Order),
        returned_value: ReturnedValue,
        target: Option<Register>,
    ) -> Result<Operand> {
        let (first, mut address) = (self.peek(), self.argument(depth)?);
        self.expect(",")?;
        let (second, mut value) = (self.peek(), self.argument(depth)?);
        let pointer = |operand| match operand {
            Operand::Number(number) => location_at(number).is_some(),
            Operand::Register(_) => false,
        };
        let mut token = first;
        // In functions of the kernel the operand comes first.
        if pointer(value) && !pointer(address) {
            std::mem::swap(&mut address, &mut value);
            token = second;
        }
        let address = self.address_of_operand(token, address)?;
        let order = self.last_order(has_order, order, (name, &[]))?;
        self.update(
            name,
            (address, change, value),
            order,
            returned_value,
            target,
        )
    }

    /// Parses the arguments of a compare-and-exchange of the kernel, and emits the access.
    fn compare_exchange(
        &mut self,
        name: Piece<'t>,
        depth: usize,
        order: Order,
        target: Option<Register>,
    ) -> Result<Operand> {
        let address = self.location_argument(depth, false)?;
        self.expect(",")?;
        let expected = self.expression(0, depth + 1, None)?;
        self.expect(",")?;
        let value = self.expression(0, depth + 1, None)?;
        self.expect(")")?;
        let change = (address, Change::CompareAndSwap(expected), value);
        self.update(name, change, order, ReturnedValue::Before, target)
    }

    /// Parses the arguments of a compare-and-exchange of C11, and emits the access.
    fn c11_compare_exchange(
        &mut self,
        name: Piece<'t>,
        depth: usize,
        has_order: bool,
        order: Order,
    ) -> Result<Operand> {
        let address = self.location_argument(depth, false)?;
        self.expect(",")?;
        let expected = self.expected_storage(depth)?;
        self.expect(",")?;
        let value = self.expression(0, depth + 1, None)?;
        let mut order = order;
        if has_order {
            self.expect(",")?;
            order = self.order()?.1;
            self.expect(",")?;
            let (word, failed) = self.order()?;
            if failed.releases() && failed != Order::Sequential {
                return error_at(
                    word,
                    "a failed exchange writes nothing, so its order cannot release",
                );
            }
            order = order.with_failure_order(failed);
        }
        self.expect(")")?;
        self.emit_compare_exchange(name, address, expected, value, order)
    }

    /// Parses the arguments of `atomic_add_unless`, and emits the access.
    fn add_unless_call(&mut self, name: Piece<'t>, depth: usize) -> Result<Operand> {
        let address = self.location_argument(depth, false)?;
        self.expect(",")?;
        let amount = self.expression(0, depth + 1, None)?;
        self.expect(",")?;
        let unless = self.expression(0, depth + 1, None)?;
        self.expect(")")?;
        self.add_unless(name, address, amount, unless)
    }

    /// Parses the argument of `spin_lock` or `spin_trylock`, and emits the acquisition.
    fn lock(&mut self, name: Piece<'t>, depth: usize, function: Function) -> Result<Operand> {
        let address = self.location_argument(depth, false)?;
        self.expect(")")?;
        let free = Operand::Number(0);
        let change = (address, Change::CompareAndSwap(free), Operand::Number(1));
        let old_value = self.update(name, change, Order::Acquire, ReturnedValue::Before, None)?;
        match (function, old_value) {
            (Function::Lock, Operand::Register(old_value)) => {
                self.require(old_value, 0);
                Ok(Operand::Number(0))
            }
            _ => self.compute(name, Operation::Equal, old_value, free),
        }
    }

    /// Returns the error for a call of an unsupported function, with a suggestion.
    fn reject_function(&self, name: Piece) -> Result<Operand> {
        let message = format!("`{}` is no function that is supported here", name.text);
        let text = name.text;
        let help = match text {
            _ if text.starts_with("atomic_compare_exchange_weak") => {
                "it may fail for no reason; `atomic_compare_exchange_strong` is supported".into()
            }
            _ if text.contains("lock") => {
                "of locks, `spin_lock` and `spin_trylock` are supported".into()
            }
            _ if text.contains("rcu") => {
                "of read-copy-update, `rcu_read_lock`, `rcu_read_unlock` and `synchronize_rcu` are supported".into()
            }
            _ => {
                let names = FUNCTIONS.iter().map(|(name, _)| *name);
                suggestion(text, "function", names)
            }
        };
        error_with_help(name, message, help)
    }

    /// Parses the order after the arguments, if the function has one, and the end of the call. Rejects the orders in
    /// `forbidden`.
    fn last_order(
        &mut self,
        has_order: bool,
        default_order: Order,
        (name, forbidden): (Piece, &[Order]),
    ) -> Result<Order> {
        if !has_order {
            return self.expect(")").map(|_| default_order);
        }
        self.expect(",")?;
        let (token, order) = self.order()?;
        self.expect(")")?;
        if forbidden.contains(&order) {
            let message = format!("`{}` is no order of `{}`", token.text, name.text);
            return error_at(token, message);
        }
        Ok(order)
    }

    /// Emits an atomic read and write. Returns its value.
    fn update(
        &mut self,
        name: Piece,
        (address, change, operand): (Address, Change, Operand),
        order: Order,
        returned_value: ReturnedValue,
        target: Option<Register>,
    ) -> Result<Operand> {
        let (mut change, mut value) = (change, operand);
        if change == SUBTRACT {
            change = Change::FetchAdd;
            value = self.compute(name, Operation::Subtract, Operand::Number(0), value)?;
        }
        let to = match returned_value {
            ReturnedValue::Before => self.target(target),
            ReturnedValue::After | ReturnedValue::Nothing => self.register(None),
        };
        let atomic = Instruction::Atomic {
            to,
            at: address,
            change,
            value,
            acquire: order.acquires(),
            release: order.releases(),
            returns: returned_value != ReturnedValue::Nothing,
            via: StoreVariant::ProtocolDefault,
        };
        self.emit(name, atomic)?;
        match returned_value {
            ReturnedValue::Before => Ok(Operand::Register(to)),
            ReturnedValue::After => {
                self.compute(name, Operation::Add, Operand::Register(to), value)
            }
            ReturnedValue::Nothing => Ok(Operand::Number(0)),
        }
    }

    /// Parses the pointer to the expected value: `&r0` is a variable, and anything else the address of a location.
    fn expected_storage(&mut self, depth: usize) -> Result<ExpectedStorage> {
        let variables = &self.thread.names;
        let register = self.tokens.get(self.position + 1).and_then(|token| {
            let register = variables.iter().position(|name| *name == token.text);
            register.filter(|_| self.peek().text == "&")
        });
        match register {
            Some(register) => {
                self.position += 2;
                Ok(ExpectedStorage::Variable(register))
            }
            None => Ok(ExpectedStorage::Location(
                self.location_argument(depth, false)?,
            )),
        }
    }

    /// Emits a compare-and-exchange. On failure, the old value replaces the expected value. Returns 1 on success,
    /// otherwise 0.
    fn emit_compare_exchange(
        &mut self,
        name: Piece,
        address: Address,
        expected: ExpectedStorage,
        value: Operand,
        order: Order,
    ) -> Result<Operand> {
        let expected_value = match expected {
            ExpectedStorage::Location(from) => self.load(name, from, Order::Relaxed, None)?,
            ExpectedStorage::Variable(variable) => {
                let to = self.register(None);
                let (operation, a, b) = (
                    Operation::Add,
                    Operand::Register(variable),
                    Operand::Number(0),
                );
                self.emit(
                    name,
                    Instruction::Compute {
                        to,
                        operation,
                        a,
                        b,
                    },
                )?;
                Operand::Register(to)
            }
        };
        let to = match expected {
            ExpectedStorage::Location(_) => self.register(None),
            ExpectedStorage::Variable(variable) => variable,
        };
        let atomic = Instruction::Atomic {
            to,
            at: address,
            change: Change::CompareAndSwap(expected_value),
            value,
            acquire: order.acquires(),
            release: order.releases(),
            returns: true,
            via: StoreVariant::ProtocolDefault,
        };
        self.emit(name, atomic)?;
        let old_value = Operand::Register(to);
        let success = self.compute(name, Operation::Equal, old_value, expected_value)?;
        if let (ExpectedStorage::Location(to), Operand::Register(register)) = (expected, success) {
            let branch = self.begin_conditional_block(name, register)?;
            self.store(name, to, old_value, Order::Relaxed)?;
            self.end_conditional_block(branch);
        }
        Ok(success)
    }

    /// Emits `atomic_add_unless`. The kernel's loop of compare-and-exchange is read as one iteration that succeeds.
    fn add_unless(
        &mut self,
        name: Piece,
        address: Address,
        amount: Operand,
        unless: Operand,
    ) -> Result<Operand> {
        let old_value = self.load(name, address, Order::Relaxed, None)?;
        let is_excluded = self.compute(name, Operation::Equal, old_value, unless)?;
        let Operand::Register(register) = is_excluded else {
            return Ok(is_excluded);
        };
        let branch = self.begin_conditional_block(name, register)?;
        let value = self.compute(name, Operation::Add, old_value, amount)?;
        let change = (address, Change::CompareAndSwap(old_value), value);
        let exchanged = self.update(
            name,
            change,
            Order::AcquireRelease,
            ReturnedValue::Before,
            None,
        )?;
        let failed = self.compute(name, Operation::Subtract, exchanged, old_value)?;
        if let Operand::Register(failed) = failed {
            self.require(failed, 0);
        }
        self.end_conditional_block(branch);
        self.compute(name, Operation::Xor, is_excluded, Operand::Number(1))
    }

    /// Begins a block that is skipped if a register is not zero. Returns the branch, for
    /// [`Reader::end_conditional_block`].
    fn begin_conditional_block(&mut self, token: Piece, on: Register) -> Result<usize> {
        let branch = self.thread.code.len();
        let (zero, to) = (false, 0);
        self.emit(token, Instruction::Branch { on, zero, to })?;
        Ok(branch)
    }

    /// Ends the block that the branch at `branch` skips.
    fn end_conditional_block(&mut self, branch: usize) {
        let end = self.thread.code.len();
        if let Instruction::Branch { to, .. } = &mut self.thread.code[branch] {
            *to = end;
        }
    }
}

/// Storage of the expected value of a compare-and-exchange, which receives the old value on failure.
#[derive(Clone, Copy)]
enum ExpectedStorage {
    /// A local variable.
    Variable(Register),
    /// A shared location.
    Location(Address),
}
