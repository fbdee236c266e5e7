//! Lowering of the rows for one event to rules.

use cohkit_engine::build::choose;
use cohkit_engine::explain::Remark;
use cohkit_engine::model::{Expr, Note, Rule, Stmt, TableId, VariableId};

use super::cases::{classes, Class, ClassCase, RowEffect};
use super::context::Context;
use super::effects::Effects;
use super::layout::Layout;
use super::options::SystemError;
use super::system_model::Mark;
use super::trigger::{CaseEffects, Trigger};

/// A case that chooses a member of a set, with its effects for one member.
struct Choice {
    /// Index of the class.
    class: usize,
    /// Index of the case in its class.
    case: usize,
    /// Effects for the member that the rule's parameter names.
    case_effects: CaseEffects,
}

/// Reaction to an event, in the states of a class.
struct ClassReaction {
    /// Condition under which the joint rule leaves the event in place. A rule that chooses a member may still take it.
    skips: Expr,
    /// Condition under which every rule leaves the event in place.
    stalls: Expr,
    /// Effects if the joint rule takes the event.
    effects: Vec<Stmt>,
}

impl ClassReaction {
    /// Reaction of a case whose guard holds. `None` stands for a case that leaves the event in place.
    fn of_case(case_effects: Option<CaseEffects>) -> ClassReaction {
        let Some(case_effects) = case_effects else {
            return ClassReaction {
                skips: Expr::Bool(true),
                stalls: Expr::Bool(true),
                effects: Vec::new(),
            };
        };
        let stalls = !case_effects.has_capacity.clone();
        let takes = case_effects.extra_condition.and(case_effects.has_capacity);
        ClassReaction {
            skips: match takes {
                Expr::Bool(true) => Expr::Bool(false),
                takes => !takes,
            },
            stalls,
            effects: case_effects.body,
        }
    }
}

/// The rules of a system, with the data for reports on them.
pub(super) struct Reactions<'s, 'p> {
    /// Components of the system.
    pub layout: &'s Layout<'p>,
    /// Lowering of the rows' statements.
    effects: Effects<'s, 'p>,
    /// Rows of each group of marks: the group's number is the index.
    pub marks: Vec<Mark>,
    /// Descriptions of waiting messages, for reports on deadlocks.
    pub remarks: Vec<Remark>,
}

impl<'s, 'p> Reactions<'s, 'p> {
    /// Creates the rules of a system that has none yet.
    pub fn new(layout: &'s Layout<'p>) -> Reactions<'s, 'p> {
        Reactions {
            layout,
            effects: Effects::new(layout),
            marks: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Adds the rules by which an agent reacts to an event.
    ///
    /// A spontaneous event has one rule for each case. Any other event has one rule with all cases in its body, so that
    /// the search evaluates each message once. Cases that choose a member of a set have rules of their own. Returns the
    /// condition under which a present event is taken.
    pub fn react(&mut self, trigger: Trigger) -> Result<Expr, SystemError> {
        let Layout { frame, agents, .. } = self.layout;
        let home = trigger.before.home;
        let controller = agents.side(home).controller;
        let classes = classes(&frame.facts, controller, trigger.event, home)?;
        let table = self.class_table(home, &trigger.name, &classes);
        let mut effects_by_case = Vec::new();
        let mut choices = Vec::new();
        let member_parameter = (classes.iter().flat_map(|class| &class.cases))
            .any(|case| case.chosen_from().is_some())
            .then(|| frame.scope.parameter("chosen", frame.remote_type));
        for (position, class) in classes.iter().enumerate() {
            let mut class_effects = Vec::new();
            for number in 0..class.cases.len() {
                let class_case = ClassCase { class, number };
                let mut case_effects = self.marked_effects(&trigger, class_case)?;
                if let (Some(member_parameter), Some(empty_set_effects)) =
                    (member_parameter, &mut case_effects)
                {
                    let member = member_parameter.into();
                    let chosen =
                        self.choose_member(&trigger, class_case, member, empty_set_effects)?;
                    choices.extend(chosen.map(|case_effects| Choice {
                        class: position,
                        case: number,
                        case_effects,
                    }));
                }
                class_effects.push(case_effects);
            }
            effects_by_case.push(class_effects);
        }
        if trigger.spontaneous {
            self.separate_rules(trigger, &classes, effects_by_case, table);
            return Ok(Expr::Bool(true));
        }
        if let Some(member_parameter) = member_parameter {
            self.choosing_rules(&trigger, member_parameter, &classes, choices, table);
        }
        Ok(self.joint_rule(trigger, &classes, effects_by_case, table))
    }

    /// Effects of a case that chooses this member of a set; `None` if the case does not choose. `empty_set_effects` are
    /// those of the case without a member, to which the condition is added that the set is empty.
    fn choose_member(
        &mut self,
        trigger: &Trigger,
        class_case: ClassCase,
        member: Expr,
        empty_set_effects: &mut CaseEffects,
    ) -> Result<Option<CaseEffects>, SystemError> {
        let Layout { frame, agents, .. } = self.layout;
        let Some(set) = class_case.case().chosen_from() else {
            return Ok(None);
        };
        let Ok(set) = set else {
            let action =
                "assigns the set of its choice in a loop, or by an expression that names no remotes";
            return Err(agents.unsupported_expression(action, &trigger.after));
        };
        let is_member = agents.member(&trigger.before, &set, member.clone());
        let any_member = frame.any_remote(|each| agents.member(&trigger.before, &set, each.into()));
        empty_set_effects.extra_condition =
            empty_set_effects.extra_condition.clone().and(!any_member);
        let mut trigger = trigger.clone();
        trigger.after.chosen = Some(member);
        let chosen = self.marked_effects(&trigger, class_case)?;
        Ok(chosen.map(|case_effects| CaseEffects {
            extra_condition: case_effects.extra_condition.and(is_member),
            ..case_effects
        }))
    }

    /// Effects of one case of a class, with the marks and watched variables. `None` if the case has none.
    fn marked_effects(
        &mut self,
        trigger: &Trigger,
        class_case: ClassCase,
    ) -> Result<Option<CaseEffects>, SystemError> {
        let case = class_case.case();
        let mut case_effects = self.effects.case_effects(trigger, class_case)?;
        if let Some(case_effects) = &mut case_effects {
            if let (RowEffect::Take(body), Some(watch)) = (&case.row_effect, &self.layout.watch) {
                case_effects
                    .body
                    .extend(watch.row_effects(trigger.event, &trigger.after, body));
            }
            let is_marked = match case.row_effect {
                RowEffect::Take(_) => true,
                // Refusing may be an error, which needs no coverage.
                RowEffect::Refuse => (trigger.refuse_effects.iter().flatten())
                    .all(|statement| !matches!(statement, Stmt::Error(_))),
                RowEffect::Stall | RowEffect::Never => false,
            };
            if is_marked {
                let mark = self.mark(trigger, class_case);
                case_effects.body.insert(0, mark);
            }
        }
        Ok(case_effects)
    }

    /// Adds one rule for each case that chooses a member of a set. The member is a parameter of the rule.
    fn choosing_rules(
        &self,
        trigger: &Trigger,
        member_parameter: VariableId,
        classes: &[Class],
        choices: Vec<Choice>,
        table: Option<TableId>,
    ) {
        for Choice {
            class,
            case,
            case_effects,
        } in choices
        {
            let in_class = self.in_class(&trigger.before, &classes[class], class, table);
            let mut guard = trigger.present.clone().and(in_class);
            for (number, earlier_case) in classes[class].cases[..=case].iter().enumerate() {
                if let Some(condition) = earlier_case.guard {
                    let holds = self.layout.agents.condition(&trigger.before, condition);
                    guard = guard.and(if number == case { holds } else { !holds });
                }
            }
            let mut parameters = trigger.parameters.clone();
            parameters.push(member_parameter);
            self.layout.frame.scope.rule(Rule {
                name: format!("{}, choosing", trigger.name),
                parameters,
                guard: guard
                    .and(case_effects.extra_condition)
                    .and(case_effects.has_capacity),
                body: [trigger.consume.clone(), case_effects.body].concat(),
                spontaneous: false,
                priority: 0,
            });
        }
    }

    /// Returns the statement that marks a taken row, for coverage. Records the case as a new group of marks.
    fn mark(&mut self, trigger: &Trigger, class_case: ClassCase) -> Stmt {
        let context = &trigger.after;
        self.marks.push(Mark {
            home: context.home,
            event: trigger.event,
            case: class_case.number,
            states: class_case.class.states.clone(),
        });
        Stmt::Note(Note::Mark {
            group: self.marks.len() as u32 - 1,
            member: self.layout.agents.state(context).into(),
        })
    }

    /// Adds one rule for each case of a spontaneous event. `effects_by_case` is indexed by class and case; `None` for a
    /// case without effect.
    fn separate_rules(
        &self,
        trigger: Trigger,
        classes: &[Class],
        effects_by_case: Vec<Vec<Option<CaseEffects>>>,
        table: Option<TableId>,
    ) {
        for (number, (class, effects_by_case)) in classes.iter().zip(effects_by_case).enumerate() {
            let in_class = self.in_class(&trigger.before, class, number, table);
            let mut rest = trigger.present.clone().and(in_class);
            for (case, case_effects) in class.cases.iter().zip(effects_by_case) {
                let mut guard = rest.clone();
                if let Some(condition) = case.guard {
                    let holds = self.layout.agents.condition(&trigger.before, condition);
                    guard = guard.and(holds.clone());
                    rest = rest.and(!holds);
                }
                if let Some(case_effects) = case_effects {
                    let body = [trigger.consume.clone(), case_effects.body].concat();
                    self.layout.frame.scope.rule(Rule {
                        name: trigger.name.clone(),
                        parameters: trigger.parameters.clone(),
                        guard: guard
                            .and(case_effects.extra_condition)
                            .and(case_effects.has_capacity),
                        body,
                        spontaneous: true,
                        priority: 0,
                    });
                }
            }
        }
    }

    /// Adds one rule for all cases. Returns the condition under which some case takes the event, here or in a rule that
    /// chooses a member.
    fn joint_rule(
        &self,
        trigger: Trigger,
        classes: &[Class],
        effects_by_case: Vec<Vec<Option<CaseEffects>>>,
        table: Option<TableId>,
    ) -> Expr {
        let mut takes_here = Expr::Bool(true);
        let mut takes_anywhere = Expr::Bool(true);
        // `None` until a class is found in which the joint rule may take the event; its effects may well be empty.
        let mut body: Option<Vec<Stmt>> = None;
        for (number, (class, effects_by_case)) in
            classes.iter().zip(effects_by_case).enumerate().rev()
        {
            let in_class = self.in_class(&trigger.before, class, number, table);
            let ClassReaction {
                skips,
                stalls,
                effects,
            } = self.class_reaction(&trigger, class, effects_by_case);
            if stalls != Expr::Bool(false) {
                takes_anywhere = (!in_class.clone().and(stalls)).and(takes_anywhere);
            }
            match skips {
                Expr::Bool(true) => takes_here = (!in_class).and(takes_here),
                skips => {
                    if skips != Expr::Bool(false) {
                        takes_here = (!in_class.clone().and(skips)).and(takes_here);
                    }
                    body = Some(match body {
                        None => effects,
                        Some(rest) => vec![choose(in_class, effects, rest)],
                    });
                }
            }
        }
        if let Some(body) = body {
            self.layout.frame.scope.rule(Rule {
                name: trigger.name,
                parameters: trigger.parameters,
                guard: trigger.present.and(takes_here),
                body: [trigger.consume, body].concat(),
                spontaneous: false,
                priority: 0,
            });
        }
        takes_anywhere
    }

    /// Returns the reaction of a class's states to an event, built from the last case to the first.
    fn class_reaction(
        &self,
        trigger: &Trigger,
        class: &Class,
        effects_by_case: Vec<Option<CaseEffects>>,
    ) -> ClassReaction {
        let agents = &self.layout.agents;
        let is_total = class.cases.last().is_some_and(|case| case.guard.is_none());
        let ignores_rest = Expr::Bool(!is_total && !trigger.is_required);
        let mut reaction = ClassReaction {
            skips: ignores_rest.clone(),
            stalls: ignores_rest,
            effects: match is_total || !trigger.is_required {
                true => Vec::new(),
                false => self.effects.unexpected(trigger),
            },
        };
        for (case, case_effects) in class.cases.iter().zip(effects_by_case).rev() {
            let case_reaction = ClassReaction::of_case(case_effects);
            reaction = match case.guard {
                Some(condition) => {
                    let guard_before = agents.condition(&trigger.before, condition);
                    let skips = either(guard_before.clone(), case_reaction.skips, reaction.skips);
                    let stalls = either(guard_before, case_reaction.stalls, reaction.stalls);
                    let guard_after = agents.condition(&trigger.after, condition);
                    ClassReaction {
                        skips,
                        stalls,
                        effects: vec![choose(guard_after, case_reaction.effects, reaction.effects)],
                    }
                }
                None => case_reaction,
            };
        }
        reaction
    }

    /// Returns the table of each state's class, whose name contains `name`. `None` if there are too few classes and
    /// states to need one.
    fn class_table(&self, home: bool, name: &str, classes: &[Class]) -> Option<TableId> {
        let is_large = classes.iter().any(|class| class.states.len() > 2);
        if classes.len() < 2 || !is_large {
            return None;
        }
        let side = self.layout.agents.side(home);
        let (states, count) = (side.states, side.controller.states.len());
        let mut values = vec![0; count];
        for (number, class) in classes.iter().enumerate() {
            for &state in &class.states {
                values[state] = number as i32;
            }
        }
        let result = self
            .layout
            .frame
            .scope
            .range("class", 0, classes.len() as i32 - 1);
        let name = format!("class of {name}");
        Some(self.layout.frame.scope.table(name, states, result, values))
    }

    /// Returns the condition that the agent's state belongs to a class. `number` is the index of the class in `table`.
    fn in_class(
        &self,
        context: &Context,
        class: &Class,
        number: usize,
        table: Option<TableId>,
    ) -> Expr {
        let agents = &self.layout.agents;
        let states = &agents.side_of(context).controller.states;
        match table {
            Some(table) if class.states.len() > 2 => {
                table.of(agents.state(context)).is(number as i32)
            }
            _ if class.states.len() == states.len() => Expr::Bool(true),
            _ => agents.is_in(context, &class.states),
        }
    }
}

/// Returns `then` or `otherwise`, both truth values, by the condition. Simplifies constant values.
fn either(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    match (&then, &otherwise) {
        (Expr::Bool(then_value), Expr::Bool(other_value)) if then_value == other_value => then,
        (Expr::Bool(true), Expr::Bool(false)) => condition,
        (Expr::Bool(false), _) => (!condition).and(otherwise),
        (Expr::Bool(true), _) => condition.or(otherwise),
        _ => condition.then(then, otherwise),
    }
}
