//! A terminal that shows one view after the other.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flagstone::env::Clock;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use crate::failure::Failure;

/// To another screen, without a cursor; and back.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?1049l";
/// To the upper left corner; to the end of the line, or of the screen, there is nothing.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_REST: &str = "\x1b[J";

/// What ends the view: q, Ctrl-C, Ctrl-D. Esc stands alone: it also begins what other keys send.
const QUIT: [u8; 4] = [b'q', b'Q', 3, 4];
const ESC: &[u8] = &[0x1b];

/// Lines where a terminal does not say how many it has.
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// The terminal, which is as it was when this is dropped.
pub struct Screen {
    before: Termios,
    signals: Signals,
}

/// How long a signal may wait that comes just before the terminal is waited for.
const SIGNALS_SEEN_AFTER: Duration = Duration::from_millis(250);

/// Notes the signals that end a program, so that the terminal is given back before.
struct Signals {
    /// The one that came last; 0 if there is none.
    came: Arc<AtomicUsize>,
    registered: Vec<SigId>,
}

impl Signals {
    fn note() -> Result<Self, Failure> {
        let mut signals = Self { came: Arc::default(), registered: Vec::new() };
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            let registered =
                flag::register_usize(signal, signals.came.clone(), signal.unsigned_abs() as usize);
            let failed = |error| Failure::Stream("handle signals", error);
            signals.registered.push(registered.map_err(failed)?);
        }
        Ok(signals)
    }

    fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed) != 0
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            let _ = low_level::unregister(id);
        }
        let came = self.came.load(Ordering::Relaxed);
        if let Some(signal) = i32::try_from(came).ok().filter(|signal| *signal != 0) {
            // Ends the process as the signal would have.
            let _ = low_level::emulate_default_handler(signal);
        }
    }
}

fn failed(error: impl Into<io::Error>) -> Failure {
    Failure::Stream("write to the terminal", error.into())
}

impl Screen {
    /// Takes the terminal; `None` if standard output is none, or no keys come from one.
    pub fn begin() -> Result<Option<Self>, Failure> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Ok(None);
        }
        let before = termios::tcgetattr(io::stdin()).map_err(failed)?;
        let mut modes = before.clone();
        let screen = Self { before, signals: Signals::note()? };
        // Keys come one by one and are not shown.
        modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &modes).map_err(failed)?;
        write(BEGIN)?;
        Ok(Some(screen))
    }

    /// Shows lines, as many and as much of each as fit.
    pub fn show(&mut self, lines: &[String]) -> Result<(), Failure> {
        let size = termios::tcgetwinsize(io::stdout()).ok();
        let (rows, columns) = size.map_or((0, 0), |size| (size.ws_row, size.ws_col));
        let rows = if rows == 0 { ROWS } else { rows };
        let columns = if columns == 0 { COLUMNS } else { columns };
        let fits = |line: &String| line.chars().take(columns.into()).collect::<String>();
        let shown: Vec<String> = lines.iter().take(rows.into()).map(fits).collect();
        let text = shown.join(&format!("{CLEAR_LINE}\r\n"));
        write(&format!("{HOME}{text}{CLEAR_LINE}{CLEAR_REST}"))
    }

    /// Waits for so long; whether a key or a signal ended the view meanwhile.
    pub fn wait(&mut self, clock: &dyn Clock, interval: Duration) -> Result<bool, Failure> {
        let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        let deadline_us = clock.now_us().saturating_add(interval_us);
        loop {
            if self.signals.came() {
                return Ok(true);
            }
            let left = Duration::from_micros(deadline_us.saturating_sub(clock.now_us()));
            if left.is_zero() {
                return Ok(false);
            }
            let stdin = io::stdin();
            let mut waited = [PollFd::new(&stdin, PollFlags::IN)];
            let timeout = left.min(SIGNALS_SEEN_AFTER).try_into().ok();
            match poll(&mut waited, timeout.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(failed(error)),
            }
            let mut keys = [0; 64];
            let count = rustix::io::read(&stdin, &mut keys).map_err(failed)?;
            let keys = &keys[..count];
            // An empty read is the end of the input.
            if keys.is_empty() || keys == ESC || keys.iter().any(|key| QUIT.contains(key)) {
                return Ok(true);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write(END);
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(failed)
}
