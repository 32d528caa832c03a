//! The state of the screen, and the effect of each key. No terminal is known here, so that tests can press keys.

use std::collections::HashMap;

use acpdb_engine::{View, store::StreamName};
use acpdb_query::context::sampled;
use acpdb_query::sessions::sparkline;
use acpdb_query::{ItemRow, SessionRow};
use ratatui::crossterm::event::KeyCode;

use super::questions::{Questions, is_dim};
use crate::commands::lines::{one_line, standing, what};
use crate::commands::{Escape, Failure, describe, escape};
use crate::describe::dollars;

/// Lines that are no rows: title, a rule, the keys, the message.
const FRAME_HEIGHT: usize = 4;
/// Columns of the picture of a context over turns.
const CURVE_WIDTH: usize = 12;

/// A list that can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Sessions,
    Timeline,
    Context,
    Chain,
    Text,
    Search,
}

impl Place {
    /// The name of the list, and the keys that work in it.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Sessions => ("sessions", "enter open  / search  q quit"),
            Self::Timeline => ("timeline", "enter text  c context  h chain  [ ] turn  / search  esc back"),
            Self::Context => ("context", "enter text  t timeline  h chain  [ ] turn  / search  esc back"),
            Self::Chain => ("chain", "enter text  esc back"),
            Self::Text => ("text", "j k lines  esc back"),
            Self::Search => ("search", "enter go there  / search again  esc back"),
        }
    }
}

/// A row as it is drawn. Its last cell takes the rest of the line.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    pub(super) cells: Vec<String>,
    pub(super) is_dim: bool,
}

/// The target of a row.
#[derive(Debug, Clone)]
enum Goal {
    Session(usize),
    Item(Box<ItemRow>),
    Hit { session: String, item: String },
    None,
}

/// A list: its rows, the picked row, and the first row in sight.
#[derive(Debug)]
struct List {
    place: Place,
    goals: Vec<Goal>,
    /// The rows, if they are known without a look at the store.
    ready: Vec<Shown>,
    picked: usize,
    top: usize,
}

/// The session that is open.
struct Open {
    name: StreamName,
    title: String,
    view: View,
    /// The turn that is shown; `None`: the newest.
    turn: Option<u32>,
    turns: u32,
    about: HashMap<String, String>,
}

/// The state of the screen.
pub(super) struct App {
    questions: Questions,
    sessions: Vec<SessionRow>,
    open: Option<Open>,
    lists: Vec<List>,
    /// The text that is being typed after `/`.
    typing: Option<String>,
    says: String,
    over: bool,
    height: usize,
    shown: Vec<Shown>,
}

impl App {
    pub(super) fn new(questions: Questions) -> Result<Self, Failure> {
        let sessions = questions.sessions()?;
        let ready = sessions.iter().map(of_session).collect();
        let goals = (0..sessions.len()).map(Goal::Session).collect();
        let list = List { place: Place::Sessions, goals, ready, picked: 0, top: 0 };
        let says = describe::count(sessions.len() as u64, "session");
        Ok(Self {
            questions,
            sessions,
            open: None,
            lists: vec![list],
            typing: None,
            says,
            over: false,
            height: 1,
            shown: Vec::new(),
        })
    }

    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn place(&self) -> Place {
        self.lists.last().map_or(Place::Sessions, |list| list.place)
    }

    /// The line above the rows.
    pub(super) fn heading(&self) -> String {
        let (name, _) = self.place().names();
        match &self.open {
            Some(open) if self.place() != Place::Sessions => {
                let turn = open.turn.unwrap_or(open.turns);
                format!("{name}  turn {turn} of {}  {}", open.turns, open.title)
            }
            _ => name.to_owned(),
        }
    }

    /// The last line: the text that is being typed, or a message.
    pub(super) fn says(&self) -> String {
        self.typing.as_ref().map_or_else(|| self.says.clone(), |text| format!("/{text}"))
    }

    /// The rows in sight, and the index of the picked one.
    pub(super) fn rows(&self) -> (&[Shown], usize) {
        // `prepare` keeps the picked row in sight; before its first call both are 0.
        let picked = self.lists.last().map_or(0, |list| list.picked.saturating_sub(list.top));
        (&self.shown, picked)
    }

    /// Makes the rows that fit a screen of `height` lines.
    pub(super) fn prepare(&mut self, height: usize) -> Result<(), Failure> {
        // A screen that is lower than the frame shows one row.
        self.height = height.saturating_sub(FRAME_HEIGHT).max(1);
        let Some(list) = self.lists.last_mut() else { return Ok(()) };
        // An empty list has its mark at 0.
        list.picked = list.picked.min(list.goals.len().saturating_sub(1));
        if list.picked < list.top {
            list.top = list.picked;
        } else if list.picked >= list.top + self.height {
            list.top = list.picked + 1 - self.height;
        }
        let mut shown = Vec::new();
        for place in list.top..list.goals.len().min(list.top + self.height) {
            if let Some(ready) = list.ready.get(place) {
                shown.push(ready.clone());
                continue;
            }
            let (Some(Goal::Item(row)), Some(open)) = (list.goals.get(place), self.open.as_mut()) else {
                continue;
            };
            let about = match open.about.get(&row.item) {
                Some(about) => about.clone(),
                None => Questions::about(&open.view, row)?,
            };
            open.about.insert(row.item.clone(), about.clone());
            shown.push(of_item(row, &about));
        }
        self.shown = shown;
        Ok(())
    }

    /// Acts on a key. A message in the last line tells of an act that is not possible.
    pub(super) fn key(&mut self, key: KeyCode) -> Result<(), Failure> {
        if self.typing.is_some() {
            self.typed(key);
            return Ok(());
        }
        self.says.clear();
        let page = isize::try_from(self.height).unwrap_or(1);
        match key {
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.step(page),
            KeyCode::PageUp => self.step(-page),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Enter | KeyCode::Right => self.enter()?,
            KeyCode::Char('c') => self.items(Place::Context)?,
            KeyCode::Char('t') => self.items(Place::Timeline)?,
            KeyCode::Char('h') => self.chain(),
            KeyCode::Char('[') => self.turn(false)?,
            KeyCode::Char(']') => self.turn(true)?,
            KeyCode::Char('/') => self.typing = Some(String::new()),
            KeyCode::Char('q') if self.lists.len() == 1 => self.over = true,
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => self.back(),
            _ => {}
        }
        Ok(())
    }

    fn step(&mut self, by: isize) {
        let Some(list) = self.lists.last_mut() else { return };
        // An empty list has its mark at 0.
        let last = list.goals.len().saturating_sub(1);
        list.picked = list.picked.saturating_add_signed(by).min(last);
    }

    fn back(&mut self) {
        if self.lists.len() > 1 {
            self.lists.pop();
        }
        if self.lists.len() == 1 {
            self.open = None;
        }
    }

    fn picked(&self) -> Goal {
        let list = self.lists.last();
        list.and_then(|list| list.goals.get(list.picked)).cloned().unwrap_or(Goal::None)
    }

    fn enter(&mut self) -> Result<(), Failure> {
        match self.picked() {
            Goal::Session(place) => {
                let Some(row) = self.sessions.get(place) else { return Ok(()) };
                let name = row.summary.name.clone();
                self.open(name)?;
                self.items(Place::Timeline)
            }
            Goal::Item(row) => {
                let Some(open) = &self.open else { return Ok(()) };
                let text = Questions::text(&open.view, &row.item)?;
                let line = |line: &str| Shown {
                    cells: vec![escape(&line.replace('\t', "    "), Escape::Text).into_owned()],
                    is_dim: false,
                };
                let ready: Vec<Shown> = text.lines().map(line).collect();
                self.says = format!("{} {}: {}", row.item, what(&row), standing(&row));
                let goals = vec![Goal::None; ready.len()];
                self.lists.push(List { place: Place::Text, goals, ready, picked: 0, top: 0 });
                Ok(())
            }
            Goal::Hit { session, item } => {
                let name = self.questions.named(&session)?;
                self.open(name)?;
                self.items(Place::Timeline)?;
                if let Some(list) = self.lists.last_mut() {
                    let is_it = |goal: &Goal| matches!(goal, Goal::Item(row) if row.item == item);
                    list.picked = list.goals.iter().position(is_it).unwrap_or(0);
                }
                Ok(())
            }
            Goal::None => Ok(()),
        }
    }

    fn open(&mut self, name: StreamName) -> Result<(), Failure> {
        let view = self.questions.view(&name, None)?;
        let turns = Questions::turns(&view);
        let title = self.sessions.iter().find(|row| row.summary.name.id == name.id);
        let title = title.and_then(|row| row.summary.name.title.clone()).unwrap_or_else(|| name.name.clone());
        self.open =
            Some(Open { title: one_line(&title), name, view, turn: None, turns, about: HashMap::new() });
        Ok(())
    }

    /// Shows the timeline or the context of the open session; each takes the other's place.
    fn items(&mut self, place: Place) -> Result<(), Failure> {
        let Some(open) = &self.open else {
            "open a session first: enter".clone_into(&mut self.says);
            return Ok(());
        };
        let rows = match place {
            Place::Context => self.questions.context(&open.view)?.into_iter().map(|item| item.row).collect(),
            _ => self.questions.timeline(&open.name, &open.view)?,
        };
        self.says = describe::count(rows.len() as u64, "item");
        // An empty list has its mark at 0.
        let picked = rows.len().saturating_sub(1);
        let goals = rows.into_iter().map(|row| Goal::Item(Box::new(row))).collect();
        while matches!(self.place(), Place::Timeline | Place::Context | Place::Chain | Place::Text) {
            self.lists.pop();
        }
        self.lists.push(List { place, goals, ready: Vec::new(), picked, top: 0 });
        Ok(())
    }

    fn chain(&mut self) {
        let (Goal::Item(row), Some(open)) = (self.picked(), &self.open) else { return };
        let found = Questions::chain(&open.name, &open.view, &row.item);
        match found.filter(|chain| chain.members.len() > 1) {
            Some(chain) => {
                let picked = chain.members.iter().position(|member| member.item == row.item).unwrap_or(0);
                let goals = chain.members.into_iter().map(|row| Goal::Item(Box::new(row))).collect();
                self.lists.push(List { place: Place::Chain, goals, ready: Vec::new(), picked, top: 0 });
            }
            None => self.says = format!("nothing superseded {}, and it superseded nothing", row.item),
        }
    }

    /// Goes to the turn before or after.
    fn turn(&mut self, is_later: bool) -> Result<(), Failure> {
        let place = self.place();
        let Some(open) = self.open.as_mut().filter(|_| matches!(place, Place::Timeline | Place::Context))
        else {
            return Ok(());
        };
        let now = open.turn.unwrap_or(open.turns);
        // The first turn is 1.
        let next = if is_later { now + 1 } else { now.saturating_sub(1).max(1) };
        open.turn = Some(next).filter(|next| *next < open.turns);
        open.view = self.questions.view(&open.name, open.turn)?;
        open.about.clear();
        self.items(place)
    }

    fn typed(&mut self, key: KeyCode) {
        let Some(text) = self.typing.as_mut() else { return };
        match key {
            KeyCode::Char(c) => text.push(c),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Esc => self.typing = None,
            KeyCode::Enter => {
                let text = std::mem::take(text);
                self.typing = None;
                if !text.is_empty() {
                    self.search(&text);
                }
            }
            _ => {}
        }
    }

    fn search(&mut self, text: &str) {
        let only = self.open.as_ref().map(|open| &open.name);
        let hits = match self.questions.search(text, only) {
            Ok(hits) => hits,
            Err(failure) => {
                self.says = failure.message;
                return;
            }
        };
        self.says = format!("{} of {text:?}", describe::count(hits.len() as u64, "place"));
        let ready = hits.iter().map(|hit| {
            let line = hit.excerpts.first().and_then(|excerpt| excerpt.lines.first());
            let name: String = hit.session.chars().take(8).collect();
            let what = hit.row.as_ref().map_or_else(|| hit.kind.to_owned(), what);
            let text = line.map(|line| one_line(&line.text)).unwrap_or_default();
            let cells = vec![escape(&name, Escape::Line).into_owned(), hit.item.clone(), what, text];
            Shown { cells, is_dim: !hit.visible }
        });
        let ready = ready.collect();
        let goals = hits.into_iter().map(|hit| Goal::Hit { session: hit.session, item: hit.item }).collect();
        if self.place() == Place::Search {
            self.lists.pop();
        }
        self.lists.push(List { place: Place::Search, goals, ready, picked: 0, top: 0 });
    }
}

fn of_session(row: &SessionRow) -> Shown {
    let summary = &row.summary;
    let id: String = summary.name.name.chars().take(8).collect();
    let when = summary.ended.map_or_else(|| describe::NO_TIME.to_owned(), describe::day);
    let cells = vec![
        escape(&id, Escape::Line).into_owned(),
        format!("{when:<11}"),
        format!("{:>6}", describe::tokens(summary.tokens_shown)),
        format!("{:>7}", row.cost.map_or_else(|| "-".to_owned(), dollars)),
        format!("{:<CURVE_WIDTH$}", sparkline(&sampled(&row.tokens_by_turn, CURVE_WIDTH))),
        summary.name.title.as_deref().map(one_line).unwrap_or_default(),
    ];
    Shown { cells, is_dim: false }
}

fn of_item(row: &ItemRow, about: &str) -> Shown {
    let stands = standing(row);
    let stands = if stands == "current" { String::new() } else { format!("[{stands}] ") };
    let cells = vec![
        row.item.clone(),
        format!("t{}", row.turn),
        format!("{:<10}", crate::commands::lines::clip(&what(row), 10)),
        format!("{:>6}", describe::tokens(row.tokens)),
        format!("{stands}{about}"),
    ];
    Shown { cells, is_dim: is_dim(row) }
}
