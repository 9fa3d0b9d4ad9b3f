//! The air interface: one cell, or the two cells of a split bearer.

use airmile_model::{Direction, Record, TtiIndex};

use super::split::SplitCells;
use super::{Cell, CellTruth, Delivery};
use crate::phy::Frame;
use crate::rlc::Sdu;
use crate::scenario::{LinkConfig, Scenario, ScenarioError};
use crate::user::UserId;

/// The air interface between base stations and phones. Its TTIs are the cell's, or NR's for
/// a split bearer.
#[derive(Debug, Clone)]
pub(crate) struct RadioAccess {
    /// The only cell, or the LTE cell.
    first: Cell,
    split: Option<Box<SplitCells>>,
}

impl RadioAccess {
    /// As [`Cell::with_users`].
    pub(crate) fn new(
        scenario: &Scenario,
        others: &[(String, LinkConfig)],
    ) -> Result<Self, ScenarioError> {
        scenario.validate()?;
        let Some(config) = &scenario.split else {
            return Ok(Self { first: Cell::with_users(scenario, others)?, split: None });
        };
        if !others.is_empty() {
            return Err(ScenarioError::OutOfRange {
                field: "split".to_owned(),
                why: "without other phones".to_owned(),
            });
        }
        let split = Some(Box::new(SplitCells::new(scenario, config)));
        Ok(Self { first: SplitCells::lte(scenario), split })
    }

    /// The TTI structure of a run.
    pub(crate) fn frame(scenario: &Scenario) -> Frame {
        scenario.split.as_ref().map_or_else(
            || Frame::new(scenario),
            |split| {
                let cell = (*split.cell).clone();
                Frame::of_leg(&Scenario { cell, split: None, ..scenario.clone() })
            },
        )
    }

    pub(crate) const fn cell(&self) -> &Cell {
        &self.first
    }

    /// The cell whose TTIs are the clock.
    const fn clock(&self) -> &Cell {
        match &self.split {
            Some(split) => &split.nr,
            None => &self.first,
        }
    }

    pub(crate) const fn tti(&self) -> TtiIndex {
        self.clock().tti()
    }

    pub(crate) const fn now_ns(&self) -> i64 {
        self.clock().now_ns()
    }

    pub(crate) fn push(&mut self, user: UserId, dir: Direction, sdu: Sdu) -> bool {
        match &mut self.split {
            Some(split) => split.push(&mut self.first, dir, sdu),
            None => self.first.push(user, dir, sdu),
        }
    }

    pub(crate) fn takes_up(&self, user: UserId, bytes: u32) -> bool {
        self.clock().takes_up(user, bytes)
    }

    pub(crate) fn queue_bytes(&self, user: UserId, dir: Direction) -> u64 {
        match &self.split {
            Some(split) => split.queue_bytes(&self.first, dir),
            None => self.first.queue_bytes(user, dir),
        }
    }

    pub(crate) fn undelivered_bytes(&self, user: UserId, dir: Direction) -> (u64, u64) {
        match &self.split {
            Some(split) => split.undelivered_bytes(&self.first, dir),
            None => self.first.undelivered_bytes(user, dir),
        }
    }

    pub(crate) fn dropped_bytes(&self, user: UserId, dir: Direction) -> u64 {
        match &self.split {
            Some(split) => split.dropped_bytes(dir),
            None => self.first.dropped_bytes(user, dir),
        }
    }

    pub(crate) fn step(&mut self) {
        match &mut self.split {
            Some(split) => split.step(&mut self.first),
            None => self.first.step(),
        }
    }

    pub(crate) fn poll_delivery(&mut self) -> Option<Delivery> {
        match &mut self.split {
            Some(split) => split.poll_delivery(),
            None => self.first.poll_delivery(),
        }
    }

    pub(crate) fn poll_record(&mut self) -> Option<Record> {
        let split = &mut self.split;
        self.first.poll_record().or_else(|| split.as_mut()?.poll_record())
    }

    pub(crate) fn log_user(
        &mut self,
        scenario: &Scenario,
        user: UserId,
        named: (&str, &LinkConfig),
    ) {
        self.first.log_user(scenario, user, named);
    }

    pub(crate) fn poll_others_record(&mut self) -> Option<(UserId, Record)> {
        self.first.poll_others_record()
    }

    pub(crate) fn into_truth(self) -> CellTruth {
        match self.split {
            Some(split) => split.into_truth(self.first),
            None => self.first.into_truth(),
        }
    }
}
