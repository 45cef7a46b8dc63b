//! A call on any path but the fastest: one function for calls from C and one for calls from Fortran, so that an
//! entry point does little more than store its arguments as words.

use std::ffi::{CStr, c_int};
use std::mem;
use std::sync::atomic::Ordering;

use super::{missing, requests, spelling};
use crate::calls::gate::{self, Fast, InFortran, Scope};
use crate::calls::ledger::{self, Ledger};
use crate::calls::now::{NOW, Origin, ThreadCall};
use crate::calls::requests::{self as operations, StartArguments};
use crate::calls::sites::Noted;
use crate::calls::thread;
use crate::calls::traffic::Sent;
use crate::entry::effects::{Completable, ObjectChange, Requests};
use crate::entry::lifecycle::start_late;
use crate::entry::requests::Prepared;
use crate::entry::stopwatch::Stopwatch;
use crate::mpi::abi::inquiry;
use crate::mpi::functions::{ArgumentKind, Function, Meeting, Name, Receives};
use crate::mpi::handles::{Arguments, Language};
use crate::observe::communicators;
use crate::observe::receives::{self, Watched};
use crate::observe::streams::{self, CallTimes, MessageArguments, Untimed, locks};
use crate::observe::timeline::{self, CallRecord, RequestsBefore, TimelineArguments};
use crate::observe::waiting::{self, AsCalled};
use crate::sys::clock;
use crate::sys::peek::element;
use crate::sys::symbols::{Address, Next};

/// The data of a function, for its entry points.
pub(super) struct Entry {
    /// The next definition in C.
    pub(super) next: Next,
    pub(super) name: &'static CStr,
    pub(super) function: Function,
    /// Name and kind of each argument.
    pub(super) arguments: &'static [(Name, ArgumentKind)],
    /// Number of words passed to its Fortran routines: the arguments, ierr, and the length of each string.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) words_from_fortran: usize,
    pub(super) effect: Effect,
    /// Whether variables are sampled when it is called.
    pub(super) samples: bool,
    pub(super) receives: Option<Receives>,
    /// On what ranks wait for each other in it, or in the call that completes what it starts.
    pub(super) waits: Option<Meeting>,
    /// The positions of its arguments, if it starts an operation.
    pub(super) started: Option<StartArguments>,
    /// The same if it sends or receives a message.
    pub(super) message: Option<MessageArguments>,
    /// Those that its events in a timeline have.
    pub(super) timeline: TimelineArguments,
}

/// How many words are passed to the Fortran routine of a row with arguments of these `types`.
pub(super) const fn words_from_fortran(types: &[&str]) -> usize {
    let mut words = types.len() + 1;
    let mut rest = types;
    while let [first, others @ ..] = rest {
        if let b"Text" = first.as_bytes() {
            words += 1;
        }
        rest = others;
    }
    words
}

impl Entry {
    /// Handles the receives in a call on any path but the fastest, if they are watched.
    #[inline]
    fn watched(&self, scope: &Scope, arguments: Arguments) -> Option<Watched> {
        if self.receives.is_none() || !receives::is_on() || !scope.is_of_program() {
            return None;
        }
        receives::before(scope.is_alone(), self.function, self.receives?, arguments)
    }
}

impl Entry {
    /// Whether another thread than the one that calls MPI makes a call, which is counted then.
    #[inline]
    fn is_aside(&self) -> bool {
        matches!(self.effect, Effect::Anywhere) && gate::is_aside(self.function)
    }

    /// The communicator or window on which ranks wait for each other in a call, and what else it says.
    #[inline]
    fn waits_on(&self, arguments: Arguments) -> Option<(usize, AsCalled)> {
        self.meets(self.waits?, arguments)
    }

    #[inline(never)]
    fn meets(&self, meeting: Meeting, arguments: Arguments) -> Option<(usize, AsCalled)> {
        let request = self.started.map(|started| arguments.at(started.request));
        match meeting {
            Meeting::OnComm { comm, root } => {
                let root = root.and_then(|root| arguments.at(root).integer());
                let comm = communicators::handle(arguments.at(comm).comm()?);
                Some((comm, AsCalled { root: root.unwrap_or(waiting::NO_ROOT), request }))
            }
            Meeting::OnWindow { win, assert } => {
                let [win, assert] = [win, assert].map(|place| arguments.at(place));
                let on = waiting::on_window(win.win()?, assert.integer()?)?;
                Some((on, AsCalled { root: waiting::NO_ROOT, request }))
            }
        }
    }

    /// Whether to time a call on any path but the fastest, or what it starts, because all ranks time it.
    #[inline]
    fn due(&self, scope: &Scope, arguments: Arguments) -> Option<waiting::Due> {
        if self.waits.is_none() || !scope.is_of_program() {
            return None;
        }
        let (comm, called) = self.waits_on(arguments)?;
        waiting::due(scope.is_alone(), self.function, comm, called)
    }
}

/// What a call on any path but the fastest sends or receives.
enum CallMessage {
    Untimed(Untimed),
    Timed(MessageArguments),
}

impl Entry {
    /// With the ledger of the thread; none for another function, and while messages are not counted.
    fn message_of(
        &self,
        scope: &Scope,
        arguments: Arguments,
    ) -> Option<(CallMessage, &'static Ledger)> {
        let at = self.message.filter(|_| streams::is_on())?;
        let ledger = scope.ledger()?;
        let message = match requests::untimed(at, arguments) {
            Some(counts) => CallMessage::Untimed(counts),
            None => CallMessage::Timed(at),
        };
        Some((message, ledger))
    }

    /// Where the status is of a call that ignores it, if only that says which message it receives.
    #[inline]
    fn lacks_status(&self, arguments: Arguments) -> Option<usize> {
        let at = self.message.filter(|_| streams::numbers_any() || timeline::is_on())?;
        let status = at.status()?;
        let is_ignored = inquiry()?.abi.status_ignore == arguments.at(status).word;
        let has_room = arguments.words().len() <= WORDS_AT_MOST;
        (is_ignored && has_room && at.is_from_any(arguments)).then(|| status.into())
    }

    /// Whether to take the time of a call for what it sends or receives, or for the requests that it completes.
    fn is_timed_for(&self, message: Option<&(CallMessage, &'static Ledger)>) -> bool {
        match message {
            Some((CallMessage::Timed(_), _)) => true,
            Some((CallMessage::Untimed(_), _)) => false,
            None => self.is_examined(),
        }
    }

    /// Counts what a successful call moved, and returns the bytes.
    #[inline]
    fn moved(&self, arguments: Arguments, ledger: &Ledger) -> u64 {
        let Effect::Moves(moved) = self.effect else { return 0 };
        let bytes = moved(arguments, &mut |sent| ledger.sent(sent));
        ledger.moved(self.function, bytes);
        bytes
    }

    /// Whether it completes requests while that is watched.
    #[inline]
    pub(super) fn is_examined(&self) -> bool {
        matches!(self.effect, Effect::Completes(_)) && gate::watches_completions()
    }

    /// The requests of a call that does not wait for them, before it; none if it waits, or there are many.
    #[inline]
    fn asks_for(&self, arguments: Arguments) -> Option<Requests> {
        let Effect::Completes(requests) = self.effect else { return None };
        requests(arguments)?.before_few()
    }
}

/// The effects that a row lists after the arguments, as functions of them.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    Nothing,
    /// Nothing, and any thread may call it at any time, whatever the level of thread support.
    Anywhere,
    /// Shows the traffic to each peer in a successful call, and returns its bytes.
    Moves(fn(Arguments, &mut dyn FnMut(Sent)) -> u64),
    /// What the operation behind a new request will move.
    Prepares(fn(Arguments) -> Option<Prepared>),
    /// Changes that take effect if the call succeeds.
    Changes(fn(&Scope, Arguments) -> ObjectChange),
    /// The same of locks of windows, while these are followed.
    Locks(fn(&Scope, Arguments) -> ObjectChange),
    /// Completes requests, whether it succeeds or not.
    Completes(fn(Arguments) -> Option<Completable>),
}

/// The result of a row's formula.
macro_rules! formula {
    ($arguments:ident ( $($arg:ident $type:ident)* ) $formula:ident ( $($on:ident)* )) => {
        $arguments.all().map(|[$($arg),*]| {
            $(
                #[allow(unused_variables)]
                let $arg = Typed::<$type>::new($arg);
            )*
            // SAFETY: the arguments of a successful call, with the types of the row.
            unsafe { bytes::$formula($($on.value()),*) }
        })
    };
}
pub(super) use formula;

/// The effect of a row that `moves` bytes.
macro_rules! moves {
    ($arguments:tt $formula:ident $on:tt) => {
        Effect::Moves(|arguments, send| {
            let moved = formula! { arguments $arguments $formula $on };
            moved.map_or(0, |moved| moved.show(&mut |sent| send(sent)))
        })
    };
}
pub(super) use moves;

/// The effect of a row that `prepares` an operation.
macro_rules! prepares {
    ($arguments:tt $formula:ident $on:tt) => {
        Effect::Prepares(|arguments| {
            let prepared = formula! { arguments $arguments $formula $on };
            prepared.map(Prepared::from)
        })
    };
}
pub(super) use prepares;

/// The function of a row that completes requests.
macro_rules! completes {
    (( $($arg:ident)* ) $what:ident ( $($on:ident)* )) => {
        |arguments| {
            #[allow(unused_variables)]
            let [$($arg),*] = arguments.all()?;
            Some(effects::completes::$what($($on),*))
        }
    };
}
pub(super) use completes;

/// The function of a row that creates or frees objects.
macro_rules! object_change {
    (( $($arg:ident)* ) $effect:ident $what:ident ( $($on:ident)* )) => {
        |scope, arguments| {
            #[allow(unused_variables)]
            let Some([$($arg),*]) = arguments.all() else { return effects::ObjectChange::Nothing };
            effects::$effect::$what(scope, $($on),*)
        }
    };
}
pub(super) use object_change;

impl Effect {
    fn before(self, scope: &Scope, arguments: Arguments) -> ObjectChange {
        match self {
            Effect::Nothing | Effect::Anywhere | Effect::Moves(_) | Effect::Prepares(_) => {
                ObjectChange::Nothing
            }
            Effect::Changes(change) | Effect::Locks(change) => {
                scope.effect(|| change(scope, arguments))
            }
            Effect::Completes(requests) if scope.is_of_program() && gate::watches_completions() => {
                let requests = requests(arguments).map(Completable::before);
                requests.map_or(ObjectChange::Nothing, ObjectChange::Completes)
            }
            Effect::Completes(_) => ObjectChange::Nothing,
        }
    }

    /// Returns the bytes that the call has moved.
    fn after(
        self,
        scope: &Scope,
        arguments: Arguments,
        change: ObjectChange,
        succeeded: bool,
        noted: Option<Noted>,
        called: CallTimes,
    ) -> u64 {
        match self {
            Effect::Moves(moved) if succeeded => {
                return scope.moved(noted, |send| moved(arguments, send));
            }
            Effect::Prepares(operation) if succeeded && scope.is_of_program() => {
                // In each row that prepares an operation the request is the last argument.
                scope.effect(|| {
                    let operation = operation(arguments);
                    if let (Some(operation), Some(request)) = (operation, arguments.last()) {
                        requests::prepared(request, operation);
                    }
                });
            }
            Effect::Changes(_) | Effect::Locks(_) if succeeded => {
                scope.effect(|| change.happened(called));
            }
            Effect::Completes(_) => change.happened(called),
            _ => {}
        }
        0
    }
}

/// Forwards a call from C, once, and counts it. `caller`: its return address; 0 if that is not known.
///
/// # Safety
///
/// `words` are the arguments with which the program called this entry point.
#[inline(never)]
pub(super) unsafe fn from_c(entry: &Entry, words: &[usize], caller: usize) -> c_int {
    // SAFETY: the caller's; the row has the arguments that the standard gives the function.
    let arguments = unsafe { Arguments::new(Language::C, words) };
    if let Some(status) = entry.lacks_status(arguments) {
        // SAFETY: the caller's.
        return unsafe { with_status(entry, words, caller, status) };
    }
    // SAFETY: the caller's.
    let next = || unsafe { forward(entry, words) };
    if entry.is_aside() {
        return next();
    }
    if let Some(result) = counted(entry, arguments, caller, next) {
        return result;
    }
    let look_up = || _ = entry.next.get(entry.name);
    in_scope(entry, arguments, caller, look_up, next)
}

/// The same for a call that has come through its entrance, which left where the return address lies.
///
/// # Safety
///
/// That of [`from_c`]; the call has not returned.
pub(super) unsafe fn from_entrance(entry: &Entry, words: &[usize]) -> c_int {
    // SAFETY: the caller's.
    let caller = unsafe { caller_of_entrance() };
    // SAFETY: the caller's.
    unsafe { from_c(entry, words, caller) }
}

/// The same for a call that has come through its entrance while calls are recorded. `messages`: what it sends and receives, if their
/// counts are at hand.
///
/// # Safety
///
/// That of [`from_entrance`].
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(super) unsafe fn recorded(entry: &Entry, words: &[usize], messages: Option<Untimed>) -> c_int {
    // SAFETY: the caller's.
    let caller = unsafe { element::<usize>(NOW.stack(), 0) };
    // SAFETY: the caller's.
    let arguments = unsafe { Arguments::new(Language::C, words) };
    let inside = messages.filter(|_| !entry.is_examined()).and_then(|messages| {
        let inside = gate::enter_recorded(entry.function)?;
        if let Some((comm, _)) = entry.waits_on(arguments)
            && waiting::is_due_or_counted(entry.function, comm)
        {
            drop(inside);
            ledger::alone().take_back(entry.function);
            return None;
        }
        messages.count();
        Some(inside)
    });
    let Some(inside) = inside else {
        // SAFETY: the caller's.
        return unsafe { from_c(entry, words, caller) };
    };
    begins(entry, arguments);
    let next = || {
        // SAFETY: the caller's.
        let result = unsafe { forward(entry, words) };
        if entry.started.is_some() && result == 0 {
            has_begun();
        }
        result
    };
    let ledger = ledger::alone();
    let call = RecordedCall { entry, arguments: &arguments, caller };
    call.forward(inside, ledger, true, next, |ledger| entry.moved(arguments, ledger))
}

/// The return address of the call that this thread has made through an entrance; 0 if it is not known.
///
/// # Safety
///
/// The call has not returned.
unsafe fn caller_of_entrance() -> usize {
    let stack = if gate::has_threads() { thread::here().stack.get() } else { NOW.stack() };
    // SAFETY: it is where the entrance found it, as long as the call has not returned.
    if stack == 0 { 0 } else { unsafe { element::<usize>(stack, 0) } }
}

/// The same for a call that ignores its status, which gyan needs: it has one for it.
///
/// # Safety
///
/// That of [`from_c`]; the status is the argument at `status`.
#[cold]
#[inline(never)]
unsafe fn with_status(entry: &Entry, words: &[usize], caller: usize, status: usize) -> c_int {
    let mut room = StatusRoom::NEW;
    // SAFETY: the caller's, with the address of a status in place of that which stands for none.
    unsafe { from_c(entry, room.instead(words, status), caller) }
}

/// Room for the arguments of a call, and for a status.
struct StatusRoom {
    /// More than any library's status needs.
    status: [u64; 16],
    words: [usize; WORDS_AT_MOST],
}

impl StatusRoom {
    const NEW: StatusRoom = StatusRoom { status: [0; 16], words: [0; WORDS_AT_MOST] };

    /// The arguments with this status as that at `status`.
    fn instead(&mut self, words: &[usize], status: usize) -> &[usize] {
        self.words.iter_mut().zip(words).for_each(|(own, word)| *own = *word);
        if let Some(place) = self.words.get_mut(status) {
            *place = self.status.as_mut_ptr().expose_provenance();
        }
        self.words.get(..words.len()).unwrap_or_default()
    }
}

/// Forwards a receive from any rank or with any tag, or a probe, or one that receives a message only if it has come, from C, and counts
/// its message by its status: for the only thread that calls MPI, on the fast path.
///
/// # Safety
///
/// As of [`from_c`]; the entry point is of a function that [only receives](MessageArguments::only_receives).
#[inline(never)]
pub(super) unsafe fn receives_from_any(
    entry: &Entry,
    at: MessageArguments,
    words: &[usize],
) -> c_int {
    let mut room = StatusRoom::NEW;
    // SAFETY: the caller's.
    let lacks = entry.lacks_status(unsafe { Arguments::new(Language::C, words) });
    let words = lacks.map_or(words, |status| room.instead(words, status));
    // SAFETY: the caller's.
    let arguments = unsafe { Arguments::new(Language::C, words) };
    let begun = if at.is_try() { 0 } else { clock::now() };
    // SAFETY: the caller's, if need be with the address of a status in place of that which stands for none.
    let result = unsafe { forward(entry, words) };
    if result == 0 && at.has_message(arguments) && !streams::counts_from_any(at, arguments) {
        // SAFETY: the caller's.
        let caller = unsafe { caller_of_entrance() };
        let ended = clock::now();
        // A call that finds a message there has not waited for it.
        let begun = if at.is_try() { ended } else { begun };
        let this_call = CallTimes { function: entry.function, caller, begun, ended };
        streams::exchanged(at, arguments, this_call, ledger::alone());
    }
    result
}

/// Notes the call of one of several threads.
#[inline]
fn enters(
    ledger: &'static Ledger,
    entry: &Entry,
    arguments: Arguments,
    caller: usize,
    is_counted: bool,
) -> ThreadCall<'static> {
    let in_fortran = arguments.language() == Language::Fortran;
    let origin = Origin::Address(caller);
    ledger.now.enter(entry.function, arguments.words(), origin, is_counted, in_fortran)
}

/// The arguments of a call that starts an operation: those that say what it is, and where its request is.
#[inline]
fn start_words(started: StartArguments, arguments: Arguments) -> (impl Fn(usize) -> usize, usize) {
    let words = arguments.words();
    let in_fortran = arguments.language() == Language::Fortran;
    let word = move |at: usize| match words.get(at) {
        #[allow(clippy::cast_sign_loss)]
        // SAFETY: in Fortran each argument is an address, these of integers.
        Some(word) if in_fortran => unsafe { element::<c_int>(*word, 0) as usize },
        Some(word) => *word,
        None => 0,
    };
    (word, words.get(started.request).copied().unwrap_or(0))
}

/// Notes the operation that a call starts, if it starts one, for the only thread that calls MPI.
#[inline]
fn begins(entry: &Entry, arguments: Arguments) {
    let Some(started) = entry.started else { return };
    let (word, request) = start_words(started, arguments);
    let in_fortran = arguments.language() == Language::Fortran;
    operations::begins(operations::kind(entry.function, in_fortran), started, word, request);
}

/// A call from C of one of several threads has succeeded that has started an operation. Inlined where the words are known.
///
/// # Safety
///
/// The words are the arguments of the call, as `started` says.
#[inline(always)]
pub(super) unsafe fn has_begun_in_c<const WORDS: usize>(
    function: Function,
    started: StartArguments,
    words: &[usize; WORDS],
) {
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let (kind, request) = (operations::kind(function, false), word(started.request));
    // SAFETY: the caller's.
    unsafe { begun_in_thread(kind, started, word, request) };
}

/// `word` and `request`: as [`start_words`] has them.
///
/// # Safety
///
/// They are those of a call that has succeeded.
#[inline(always)]
unsafe fn begun_in_thread(
    kind: usize,
    started: StartArguments,
    word: impl Fn(usize) -> usize,
    request: usize,
) {
    if request != 0 {
        // SAFETY: the address of a request, which the call has written: at least 4 bytes.
        let handle = unsafe { element::<u32>(request, 0) };
        operations::has_begun_in_thread(kind, started, word, request, handle);
    }
}

/// A call of one of several threads has succeeded that starts an operation, if it starts one.
#[inline(never)]
pub(super) fn has_begun_in_thread(entry: &Entry, arguments: Arguments) {
    let Some(started) = entry.started else { return };
    let (word, request) = start_words(started, arguments);
    let in_fortran = arguments.language() == Language::Fortran;
    let kind = operations::kind(entry.function, in_fortran);
    // SAFETY: the arguments of this call, which has succeeded.
    unsafe { begun_in_thread(kind, started, word, request) };
}

/// The call that started the operation has succeeded.
#[inline]
pub(super) fn has_begun() {
    // SAFETY: it points to a slot of the ring, which stays.
    let slot = unsafe { &*operations::NEXT.load(Ordering::Relaxed) };
    let place = slot.request.load(Ordering::Relaxed);
    if place != 0 {
        // SAFETY: the address of a request, which the call has written: at least 4 bytes.
        operations::has_begun(slot, unsafe { element::<u32>(place, 0) });
    }
}

/// Forwards a call in a scope. `before`: what is done before the time is taken.
#[inline]
fn in_scope(
    entry: &Entry,
    arguments: Arguments,
    caller: usize,
    before: impl FnOnce(),
    next: impl FnOnce() -> c_int,
) -> c_int {
    let scope = gate::enter(entry.function, start_late);
    if let Some(ledger) = scope.ledger() {
        came_in_words(ledger, arguments);
    }
    if scope.is_alone() {
        NOW.came_in_words(arguments.words(), caller, false);
        begins(entry, arguments);
    }
    let _now = scope.thread().map(|ledger| enters(ledger, entry, arguments, caller, false));
    let change = entry.effect.before(&scope, arguments);
    before();
    let watched = entry.watched(&scope, arguments);
    let due = entry.due(&scope, arguments);
    let stopwatch = Stopwatch::start(&scope, entry.function, entry.samples, due);
    let message = entry.message_of(&scope, arguments);
    let records = timeline::is_on() && scope.is_of_program();
    let before = if records { RequestsBefore::of(&entry.timeline, arguments) } else { None };
    let is_timed = records || change.is_timed() || entry.is_timed_for(message.as_ref());
    let now = || if is_timed { clock::now() } else { 0 };
    let begun = now();
    let result = next();
    let this_call = CallTimes { function: entry.function, caller, begun, ended: now() };
    if entry.started.is_some() && result == 0 {
        if scope.is_alone() {
            has_begun();
        } else if scope.is_of_program() {
            has_begun_in_thread(entry, arguments);
        }
    }
    let noted = Stopwatch::stop(stopwatch, caller, result == 0);
    receives::after(watched, arguments, result == 0);
    if let Some((message, ledger)) = message.filter(|_| result == 0) {
        match message {
            CallMessage::Untimed(counts) => counts.count_in(ledger),
            CallMessage::Timed(at) => requests::exchanged(at, arguments, this_call, ledger),
        }
    }
    let succeeded = result == 0;
    let bytes = entry.effect.after(&scope, arguments, change, succeeded, noted, this_call);
    if records {
        let whole = CallTimes { caller: caller_of(entry, caller), ..this_call };
        let is_alone = scope.is_alone();
        let thread = scope.ledger().map_or(0, Ledger::place);
        let (at, before, arguments) = (&entry.timeline, before.as_ref(), &arguments);
        CallRecord { at, arguments, called: whole, succeeded, bytes, is_alone, thread, before }
            .keep();
    }
    result
}

/// Where a call in a scope returns to: while receives are watched, a function that deals with them is called by gyan itself.
fn caller_of(entry: &Entry, caller: usize) -> usize {
    if entry.receives.is_some() && receives::is_on() { thread::here().caller.get() } else { caller }
}

/// Forwards a call that is only counted; returns none for any other call. `next`: calls the next definition and
/// returns its result.
#[inline]
fn counted(
    entry: &Entry,
    arguments: Arguments,
    caller: usize,
    next: impl Fn() -> c_int,
) -> Option<c_int> {
    if matches!(entry.effect, Effect::Changes(_) | Effect::Prepares(_))
        || matches!(entry.effect, Effect::Locks(_)) && locks::follows(entry.function)
        || entry.receives.is_some() && receives::is_on()
    {
        return None;
    }
    // Programs ask again and again whether something has come.
    let asked = match entry.is_examined() {
        true if timeline::is_on() => return None,
        true => Some(entry.asks_for(arguments)?),
        false => None,
    };
    let untimed = match entry.message {
        Some(at) => requests::untimed(at, arguments)?,
        None => Untimed::NOTHING,
    };
    let function = entry.function;
    let on = entry.waits_on(arguments);
    // Its time counts for its function and its line, too.
    if on.is_some_and(|(comm, _)| waiting::is_due(function, comm)) {
        return None;
    }
    let next = |alone| match (on, &asked) {
        (Some((comm, meeting)), _) => {
            waiting::around(alone, function, || Some(comm), meeting, &next)
        }
        (None, Some(asked)) => {
            let result = next();
            asked.completed_some(function, caller);
            result
        }
        (None, None) => next(),
    };
    let moved = |ledger: &Ledger| entry.moved(arguments, ledger);
    let call = RecordedCall { entry, arguments: &arguments, caller };
    match gate::fast(function, timeline::is_on()) {
        Fast::Alone(inside) => {
            untimed.count();
            came_in_words(ledger::alone(), arguments);
            if asked.is_some() {
                ledger::alone().asked();
            }
            NOW.came_in_words(arguments.words(), caller, true);
            begins(entry, arguments);
            let next = || {
                let result = next(true);
                if entry.started.is_some() && result == 0 {
                    has_begun();
                }
                result
            };
            Some(call.forward(inside, ledger::alone(), true, next, moved))
        }
        Fast::Thread => {
            let inside = gate::enter_thread(function)?;
            let ledger = inside.ledger;
            untimed.count_in(ledger);
            came_in_words(ledger, arguments);
            if asked.is_some() {
                ledger.asked();
            }
            let _now = enters(ledger, entry, arguments, caller, true);
            let next = || {
                let result = next(false);
                if entry.started.is_some() && result == 0 {
                    has_begun_in_thread(entry, arguments);
                }
                result
            };
            Some(call.forward(inside, ledger, false, next, moved))
        }
        Fast::None => None,
    }
}

/// A call that is counted, and leaves its events in the timeline if there is one.
struct RecordedCall<'a> {
    entry: &'a Entry,
    arguments: &'a Arguments<'a>,
    caller: usize,
}

impl RecordedCall<'_> {
    /// As [`gate::forward`]; `moved` returns bytes. `is_alone`: no other thread calls MPI.
    #[inline]
    fn forward<T>(
        &self,
        inside: T,
        ledger: &Ledger,
        is_alone: bool,
        next: impl FnOnce() -> c_int,
        moved: impl FnOnce(&Ledger) -> u64,
    ) -> c_int {
        if !timeline::is_on() {
            return gate::forward(inside, ledger, next, |ledger| _ = moved(ledger));
        }
        let RecordedCall { entry, arguments, caller } = *self;
        let at = &entry.timeline;
        let before = RequestsBefore::of(at, *arguments);
        let before = before.as_ref();
        let begun = clock::now();
        let result = next();
        let called = CallTimes { function: entry.function, caller, begun, ended: clock::now() };
        let succeeded = result == 0;
        let bytes = if succeeded { moved(ledger) } else { 0 };
        let thread = ledger.place();
        CallRecord { at, arguments, called, succeeded, bytes, is_alone, thread, before }.keep();
        drop(inside);
        result
    }
}

/// The program made a call whose arguments came as words.
#[inline]
fn came_in_words(ledger: &Ledger, arguments: Arguments) {
    ledger.came_in_words(arguments.language() == Language::Fortran);
}

/// Forwards a call from C to the next definition, and does nothing else.
///
/// # Safety
///
/// `words` are the arguments with which the program called this entry point.
#[inline(never)]
pub(super) unsafe fn forward(entry: &Entry, words: &[usize]) -> c_int {
    match entry.next.get(entry.name) {
        // SAFETY: the row has the arguments that the standard gives this function.
        Some(next) => unsafe { call(next, words) },
        None => missing::call(entry.name, entry.arguments, words),
    }
}

/// Forwards a call from Fortran, once, and counts it. The words: as many arguments as the row has,
/// ierr, and the length of each string. `spelling`: of the routine's name; `caller` as of [`from_c`].
///
/// # Safety
///
/// `words` are the arguments with which the program called this entry point.
#[inline(never)]
pub(super) unsafe fn from_fortran(
    entry: &Entry,
    words: &mut [usize],
    spelling: usize,
    caller: usize,
) {
    let next = spelling::next_or_end(entry, spelling);
    // ierr is optional in mpi_f08, and the routine only writes it. gyan needs the result.
    let mut own: c_int = 0;
    // Every entry point has it.
    let Some(ierr) = words.get_mut(entry.arguments.len()) else { return };
    if *ierr == 0 {
        *ierr = &raw mut own as usize;
    }
    let ierr = *ierr;
    let arguments = words.get(..entry.arguments.len()).unwrap_or_default();
    // SAFETY: the caller's; the row has the arguments that the standard gives the function.
    let arguments = unsafe { Arguments::new(Language::Fortran, arguments) };
    let next = |in_fortran: fn() -> InFortran| {
        let in_fortran = in_fortran();
        // SAFETY: a Fortran routine with as many arguments as the row has, ierr, and a length for each
        // string; each argument is an address, whatever its type.
        unsafe { call(next, words) };
        drop(in_fortran);
        // SAFETY: the routine has written it.
        unsafe { element::<c_int>(ierr, 0) }
    };
    if entry.is_aside() {
        next(InFortran::aside);
        return;
    }
    if counted(entry, arguments, caller, || next(InFortran::enter)).is_some() {
        return;
    }
    let clear = || {
        if let Effect::Changes(_) = entry.effect {
            clear_stack();
        }
    };
    in_scope(entry, arguments, caller, clear, || next(InFortran::enter));
}

/// Zeroes the stack that the next function will use. When the file cannot be opened, MPICH 4's `mpi_file_open_`
/// converts an uninitialised handle: whether it dies depends on what an earlier call left on the stack, and
/// without gyan that is zeros.
#[inline(never)]
fn clear_stack() {
    const WORDS: usize = 1024;
    std::hint::black_box(&mut [0_usize; WORDS]);
}

/// Calls a function whose arguments are machine words.
///
/// # Safety
///
/// The function at `address` takes these arguments.
pub(super) unsafe fn call(address: Address, words: &[usize]) -> c_int {
    macro_rules! call {
        ($($word:ident)*) => {
            if let [$($word),*] = *words {
                type Function = extern "C-unwind" fn($(word!($word)),*) -> c_int;
                // SAFETY: the caller's promise: integers and pointers are passed as words.
                let function = unsafe { mem::transmute::<Address, Function>(address) };
                return function($($word),*);
            }
        };
    }
    call!();
    call!(a);
    call!(a b);
    call!(a b c);
    call!(a b c d);
    call!(a b c d e);
    call!(a b c d e f);
    call!(a b c d e f g);
    call!(a b c d e f g h);
    call!(a b c d e f g h i);
    call!(a b c d e f g h i j);
    call!(a b c d e f g h i j k);
    call!(a b c d e f g h i j k l);
    call!(a b c d e f g h i j k l m);
    call!(a b c d e f g h i j k l m n);
    call!(a b c d e f g h i j k l m n o);
    call!(a b c d e f g h i j k l m n o p);
    // A test ensures that no row has more.
    0
}

macro_rules! word {
    ($word:ident) => {
        usize
    };
}
use word;

/// As many words as [`call`] can pass.
pub(super) const WORDS_AT_MOST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    extern "C-unwind" fn of_three(first: usize, second: usize, third: usize) -> c_int {
        c_int::try_from(first + 10 * second + 100 * third).unwrap()
    }

    #[test]
    fn words_arrive_in_their_order() {
        let address = Address::new(of_three as *mut _).unwrap();
        // SAFETY: the function takes three words.
        assert_eq!(unsafe { call(address, &[1, 2, 3]) }, 321);
    }
}
