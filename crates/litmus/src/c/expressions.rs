//! Expressions: operators, operands, and the addresses of locations.

use cohkit_diagnostics::suggestion;

use super::order::Order;
use super::reader::{variable, Reader, MAX_DEPTH};
use super::tokens::TYPES;
use crate::piece::{error_at, error_with_help, number, Piece, Result};
use crate::program::{address_of, location_at, Address, Location, Operand, Operation, Register};

impl<'t> Reader<'_, 't> {
    /// Parses operators of this precedence level or of a higher one. The result of a single access goes to `target`.
    pub(super) fn expression(
        &mut self,
        level: usize,
        depth: usize,
        target: Option<Register>,
    ) -> Result<Operand> {
        const LEVELS: [&[(&str, Operation)]; 9] = [
            &[("||", Operation::Or)],
            &[("&&", Operation::And)],
            &[("|", Operation::Or)],
            &[("^", Operation::Xor)],
            &[("&", Operation::And)],
            &[("==", Operation::Equal), ("!=", Operation::Equal)],
            &[
                ("<", Operation::Less),
                (">", Operation::Less),
                ("<=", Operation::Less),
                (">=", Operation::Less),
            ],
            &[("<<", Operation::ShiftLeft)],
            &[("+", Operation::Add), ("-", Operation::Subtract)],
        ];
        if depth > MAX_DEPTH {
            return error_at(self.peek(), "there are too many parts within each other");
        }
        let Some(operators) = LEVELS.get(level) else {
            return self.primary(depth, target);
        };
        let mut value = self.expression(level + 1, depth, target)?;
        loop {
            let token = self.peek();
            let Some((word, operation)) = operators.iter().find(|(word, _)| *word == token.text)
            else {
                return Ok(value);
            };
            self.next();
            let accesses = self.access_count();
            let mut right = self.expression(level + 1, depth, None)?;
            if matches!(*word, "&&" | "||") {
                if self.access_count() > accesses {
                    let message =
                        format!("the access after `{word}` depends on the operand before it");
                    return error_with_help(token, message, "an `if` within another says the same");
                }
                value = self.truth_value(token, value)?;
                right = self.truth_value(token, right)?;
            }
            // `a > b` is `b < a`, and `a <= b` is its negation.
            if matches!(*word, ">" | "<=") {
                std::mem::swap(&mut value, &mut right);
            }
            value = self.compute(token, *operation, value, right)?;
            if matches!(*word, "!=" | "<=" | ">=") {
                value = self.compute(token, Operation::Xor, value, Operand::Number(1))?;
            }
        }
    }

    /// Returns the number of accesses of the thread so far.
    fn access_count(&self) -> usize {
        let code = self.thread.code.iter();
        code.filter(|instruction| instruction.address().is_some())
            .count()
    }

    /// Converts a value to a truth value: 1 if it is not zero, otherwise 0.
    fn truth_value(&mut self, token: Piece, value: Operand) -> Result<Operand> {
        let zero = Operand::Number(0);
        let equal = self.compute(token, Operation::Equal, value, zero)?;
        self.compute(token, Operation::Equal, equal, zero)
    }

    /// Parses an operand: a number, a name, a call, a cast, or a unary operator with its operand.
    fn primary(&mut self, depth: usize, target: Option<Register>) -> Result<Operand> {
        let token = self.next();
        if depth > MAX_DEPTH {
            return error_at(token, "there are too many parts within each other");
        }
        match token.text {
            // Cast to a type.
            "(" if TYPES.contains(&self.peek().text) => {
                while TYPES.contains(&self.peek().text) || self.peek().text == "*" {
                    self.next();
                }
                self.expect(")")?;
                self.primary(depth + 1, target)
            }
            "(" => {
                let value = self.expression(0, depth + 1, None)?;
                self.expect(")")?;
                Ok(value)
            }
            "-" => {
                let value = self.primary(depth + 1, None)?;
                self.compute(token, Operation::Subtract, Operand::Number(0), value)
            }
            "~" => {
                let value = self.primary(depth + 1, None)?;
                self.compute(token, Operation::Xor, value, Operand::Number(-1))
            }
            "!" => {
                let value = self.primary(depth + 1, None)?;
                self.compute(token, Operation::Equal, value, Operand::Number(0))
            }
            "*" => {
                let from = self.dereference(depth + 1)?;
                self.load(token, from, Order::Relaxed, target)
            }
            "&" if self.location().is_some() => {
                let token = self.next();
                self.named_value(token)
            }
            text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                Ok(Operand::Number(number(token)?))
            }
            text if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                match self.peek().text == "(" {
                    true => self.call(token, depth, target),
                    false => self.named_value(token),
                }
            }
            _ => error_at(token, "a value is expected here"),
        }
    }

    /// Returns the location that the next token names, if any.
    fn location(&self) -> Option<Location> {
        let name = self.peek().text;
        let mut shared = self.shared.iter();
        shared
            .find(|(declared, _)| *declared == name)
            .map(|(_, location)| *location)
    }

    /// Returns the value of a name: the address of a location, or the variable's register.
    fn named_value(&mut self, token: Piece<'t>) -> Result<Operand> {
        let mut shared = self.shared.iter();
        match shared.find(|(name, _)| *name == token.text) {
            Some((_, location)) => Ok(Operand::Number(address_of(*location))),
            None => Ok(Operand::Register(variable(&mut self.thread, token)?)),
        }
    }

    /// Returns the location at an address.
    pub(super) fn address_of_operand(
        &mut self,
        token: Piece<'t>,
        address: Operand,
    ) -> Result<Address> {
        match address {
            Operand::Number(address) => match location_at(address) {
                Some(location) => Ok(Address::Direct(location)),
                None => error_at(token, "this is the address of no location"),
            },
            Operand::Register(register) => {
                self.indirect = self.indirect.or(Some(token));
                Ok(Address::Indirect(register))
            }
        }
    }

    /// Parses the operand of `*`.
    pub(super) fn dereference(&mut self, depth: usize) -> Result<Address> {
        let token = self.peek();
        let address = self.primary(depth + 1, None)?;
        self.address_of_operand(token, address)
    }

    /// Parses the location argument of a function: an address, or `*` and a name if the function is a macro.
    pub(super) fn location_argument(&mut self, depth: usize, is_macro: bool) -> Result<Address> {
        let token = self.peek();
        if is_macro && self.consume_if("*") {
            return self.dereference(depth);
        }
        let address = self.argument(depth)?;
        self.address_of_operand(token, address)
    }

    /// Parses an argument of a function, which may be the address of a location.
    pub(super) fn argument(&mut self, depth: usize) -> Result<Operand> {
        let token = self.peek();
        let is_name_start = |c: char| c.is_ascii_alphabetic() || c == '_';
        let next_token = self.tokens.get(self.position + 1);
        let is_whole_argument = next_token.is_none_or(|t| matches!(t.text, "," | ")"));
        let variable = self.thread.names.iter().any(|name| *name == token.text);
        if token.text.starts_with(is_name_start)
            && is_whole_argument
            && self.location().is_none()
            && !variable
        {
            let message = format!("`{}` is no location that this thread is given", token.text);
            let names = self.shared.iter().map(|(name, _)| *name);
            return error_with_help(token, message, suggestion(token.text, "location", names));
        }
        self.expression(0, depth + 1, None)
    }
}
