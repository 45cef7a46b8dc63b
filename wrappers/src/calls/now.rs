//! What is the program doing now? Entry points leave a few words before they forward a call: where it came from, and the
//! arguments that say for whom it waits. The keeper reads them, with the gate, from the memory of a rank that may be stuck
//! (`process_vm_readv(2)`), so that they cost a store each and nothing else.
//!
//! Where any thread may call MPI, each leaves the same in its ledger, and its arguments stay on its stack.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::requests::StartArguments;
use crate::mpi::functions::Function;

/// How many arguments of a call have a place.
pub(crate) const WORDS: usize = 12;

/// A call that is in progress, or was the last one.
#[repr(C)]
pub(crate) struct Now {
    /// Where on the stack its return address lies, and behind it the arguments from the seventh on (System V ABI for x86-64,
    /// 3.2.3). For a call whose arguments are all here it is [`COUNTED_AFTER`] or [`COUNTED_BEFORE`].
    stack: AtomicUsize,
    /// The return address of such a call; 0 if it is not known.
    caller: AtomicUsize,
    /// The arguments by their position. Of a call with a stack only those that [`is_kept`], of the first six.
    words: [AtomicUsize; WORDS],
}

pub(crate) static NOW: Now = Now {
    stack: AtomicUsize::new(0),
    caller: AtomicUsize::new(0),
    words: [const { AtomicUsize::new(0) }; WORDS],
};

impl Now {
    /// A call of the only thread that calls MPI, on any path but the fastest. `is_counted`: already.
    #[inline]
    pub(crate) fn came_in_words(&self, words: &[usize], caller: usize, is_counted: bool) {
        self.stack.store(usize::from(is_counted), Ordering::Relaxed);
        self.caller.store(caller, Ordering::Relaxed);
        for (place, word) in self.words.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
    }

    /// Where the return address lies of a call that has come through its entrance; 0 if the last one has not.
    pub(crate) fn stack(&self) -> usize {
        match self.stack.load(Ordering::Relaxed) {
            COUNTED_AFTER | COUNTED_BEFORE => 0,
            stack => stack,
        }
    }
}

const COUNTED_AFTER: usize = 0;
const COUNTED_BEFORE: usize = 1;

/// The call that one of several threads is in, or its last one.
#[repr(C)]
pub(crate) struct ThreadNow {
    /// The function, plus 1; 0 before the first call and after the end of the thread.
    function: AtomicUsize,
    /// As its [`Origin`] says.
    origin: AtomicUsize,
    /// Where its arguments are; 0 while the thread is in its own code.
    words: AtomicUsize,
    /// How many of them there are, whether the call is counted already, whether it is from Fortran, and what `origin` is.
    form: AtomicUsize,
}

const COUNTED: usize = 1 << 8;
const FORTRAN: usize = 1 << 9;
const ON_STACK: usize = 1 << 10;

/// Where a call comes from.
#[derive(Clone, Copy)]
pub(crate) enum Origin {
    /// This is its return address; 0 if it is not known.
    Address(usize),
    /// Its return address lies here on the stack; 0 if that is not known.
    OnStack(usize),
}

impl ThreadNow {
    pub(crate) const fn new() -> ThreadNow {
        ThreadNow {
            function: AtomicUsize::new(0),
            origin: AtomicUsize::new(0),
            words: AtomicUsize::new(0),
            form: AtomicUsize::new(0),
        }
    }

    /// The thread calls `function`, until what this returns is dropped.
    #[inline]
    pub(crate) fn enter<'a>(
        &'a self,
        function: Function,
        words: &[usize],
        origin: Origin,
        is_counted: bool,
        in_fortran: bool,
    ) -> ThreadCall<'a> {
        let (origin, place) = match origin {
            Origin::Address(address) => (address, 0),
            Origin::OnStack(at) => (at, ON_STACK),
        };
        let form = words.len().min(WORDS)
            | if is_counted { COUNTED } else { 0 }
            | if in_fortran { FORTRAN } else { 0 }
            | place;
        self.function.store(function.0 + 1, Ordering::Relaxed);
        self.origin.store(origin, Ordering::Relaxed);
        self.form.store(form, Ordering::Relaxed);
        self.words.store(words.as_ptr().expose_provenance(), Ordering::Relaxed);
        ThreadCall(self)
    }

    pub(crate) fn ends(&self) {
        self.function.store(0, Ordering::Relaxed);
    }
}

/// While it lives, a thread is in a call.
pub(crate) struct ThreadCall<'a>(&'a ThreadNow);

impl Drop for ThreadCall<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.words.store(0, Ordering::Relaxed);
    }
}

/// Whether an argument says for whom or for what a call waits.
const fn says_whom(name: &str) -> bool {
    matches!(
        name.as_bytes(),
        b"dest"
            | b"source"
            | b"tag"
            | b"sendtag"
            | b"comm"
            | b"root"
            | b"request"
            | b"array_of_requests"
    )
}

/// Where a collective operation has its amount, if that is the same in every rank: the count and the datatype. Of the two that
/// some have, it is that of the receive buffer, which holds with `MPI_IN_PLACE` too (MPI 4.1, 6.4 and 6.7 to 6.11).
pub(crate) const fn amount(function: &str) -> Option<[usize; 2]> {
    match function.as_bytes() {
        b"MPI_Bcast" | b"MPI_Bcast_c" => Some([1, 2]),
        b"MPI_Allreduce"
        | b"MPI_Allreduce_c"
        | b"MPI_Exscan"
        | b"MPI_Exscan_c"
        | b"MPI_Reduce"
        | b"MPI_Reduce_c"
        | b"MPI_Reduce_scatter_block"
        | b"MPI_Reduce_scatter_block_c"
        | b"MPI_Scan"
        | b"MPI_Scan_c" => Some([2, 3]),
        b"MPI_Allgather" | b"MPI_Allgather_c" | b"MPI_Alltoall" | b"MPI_Alltoall_c" => Some([4, 5]),
        _ => None,
    }
}

/// Whether the argument at `position` of a function with these arguments is kept. The number of requests comes before
/// them. What a function says that starts an operation is kept with its request ([`crate::calls::requests`]).
pub(crate) const fn is_kept(function: &str, names: &[&str], position: usize) -> bool {
    if StartArguments::new(function, names).is_some() {
        return false;
    }
    if let Some([count, datatype]) = amount(function)
        && (position == count || position == datatype)
    {
        return true;
    }
    let mut rest = names;
    let mut at = 0;
    while let [name, others @ ..] = rest {
        if at == position {
            let is_number =
                matches!(others, [next, ..] if matches!(next.as_bytes(), b"array_of_requests"));
            return is_number || says_whom(name);
        }
        rest = others;
        at += 1;
    }
    false
}

/// The offset of the first argument in [`NOW`].
#[cfg(target_arch = "x86_64")]
pub(crate) const FIRST_WORD: usize = std::mem::offset_of!(Now, words);

/// What is there in another process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NowSeen {
    stack: usize,
    caller: usize,
    words: [usize; WORDS],
}

/// What is there of a thread of another process.
pub(crate) struct ThreadNowSeen {
    pub(crate) function: Function,
    pub(crate) in_mpi: bool,
    pub(crate) in_fortran: bool,
    pub(crate) now: NowSeen,
}

impl ThreadNowSeen {
    /// `all`: the words of a [`ThreadNow`]; none if the thread has ended. `read`: reads a word of that process.
    pub(crate) fn from_words(
        all: [usize; 4],
        read: impl Fn(usize) -> Option<usize>,
    ) -> Option<ThreadNowSeen> {
        let [number, origin, at, form] = all;
        let function = Function(number.checked_sub(1)?);
        let caller = if form & ON_STACK == 0 {
            origin
        } else if at == 0 || origin == 0 {
            // Something else is there once the call has returned.
            0
        } else {
            read(origin)?
        };
        let length = if at == 0 { 0 } else { form & (COUNTED - 1) };
        let mut words = [0; WORDS];
        for (number, word) in words.iter_mut().take(length).enumerate() {
            *word = read(at.wrapping_add(number * size_of::<usize>()))?;
        }
        let stack = if form & COUNTED == 0 { COUNTED_AFTER } else { COUNTED_BEFORE };
        let now = NowSeen { stack, caller, words };
        Some(ThreadNowSeen { function, in_mpi: at != 0, in_fortran: form & FORTRAN != 0, now })
    }
}

impl NowSeen {
    pub(crate) fn from_words(all: [usize; 2 + WORDS]) -> NowSeen {
        let [stack, caller, words @ ..] = all;
        NowSeen { stack, caller, words }
    }

    /// Whether the call is counted when it ends, not when it begins.
    pub(crate) fn is_counted_after(&self) -> bool {
        self.stack == COUNTED_AFTER
    }

    fn has_all_words(&self) -> bool {
        self.stack <= COUNTED_BEFORE
    }

    /// The argument at `position` of a function with these `names`; `read` reads a word of that process.
    pub(crate) fn word(
        &self,
        function: &str,
        names: &[&str],
        position: usize,
        read: impl Fn(usize) -> Option<usize>,
    ) -> Option<usize> {
        const IN_REGISTERS: usize = 6;
        if self.has_all_words() {
            return self.words.get(position).copied();
        }
        match position.checked_sub(IN_REGISTERS) {
            // Behind the return address.
            Some(behind) => read(self.stack.wrapping_add((1 + behind) * size_of::<usize>())),
            None => {
                self.words.get(position).copied().filter(|_| is_kept(function, names, position))
            }
        }
    }

    /// The return address; none if it is not known.
    pub(crate) fn returns_to(&self, read: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        let address = if self.has_all_words() { self.caller } else { read(self.stack)? };
        (address != 0).then_some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::functions::functions;

    #[test]
    fn arguments_are_found_where_they_were_left() {
        let names = ["buf", "count", "datatype", "source", "tag", "comm", "status"];
        let seen = |stack| NowSeen { stack, caller: 7, words: std::array::from_fn(|at| 100 + at) };
        let read = |at: usize| Some(at + 1000);
        let word = |stack, position| seen(stack).word("MPI_Recv", &names, position, read);
        assert_eq!([3, 4, 5].map(|at| word(64, at)), [103, 104, 105].map(Some));
        // Those that are not kept, and one on the stack.
        assert_eq!([word(64, 0), word(64, 6)], [None, Some(64 + 8 + 1000)]);
        assert_eq!([word(0, 0), word(0, 6)], [100, 106].map(Some));
        assert_eq!([seen(64).returns_to(read), seen(0).returns_to(read)], [Some(1064), Some(7)]);
        assert_eq!([seen(0), seen(1)].map(|seen| seen.is_counted_after()), [true, false]);
        let waits = ["count", "array_of_requests", "array_of_statuses"];
        let kept = [0, 1, 2].map(|at| is_kept("MPI_Waitall", &waits, at));
        assert_eq!(kept, [true, true, false]);
    }

    #[test]
    fn amounts_are_where_the_arguments_say_so() {
        let mut found = 0;
        for (_, row) in functions() {
            let Some(places) = amount(row.name) else { continue };
            let names = places.map(|at| row.arguments[at]);
            assert!(
                [["count", "datatype"], ["recvcount", "datatype"], ["recvcount", "recvtype"]]
                    .contains(&names),
                "{}: {names:?}",
                row.name
            );
            assert!(places.iter().all(|at| is_kept(row.name, row.arguments, *at)));
            found += 1;
        }
        assert_eq!(found, 16);
    }

    #[test]
    fn a_thread_is_in_its_call_until_that_returns() {
        let thread = ThreadNow::new();
        let seen = || {
            let all = [&thread.function, &thread.origin, &thread.words, &thread.form];
            let all = all.map(|word| word.load(Ordering::Relaxed));
            ThreadNowSeen::from_words(all, |at| Some(at.wrapping_sub(all[2])))
        };
        assert!(seen().is_none());
        let call = thread.enter(Function(3), &[7; 2], Origin::Address(64), true, false);
        let now = seen().unwrap();
        assert_eq!((now.function.0, now.in_mpi, now.in_fortran), (3, true, false));
        // Each word is read at its place.
        assert_eq!(now.now.words[..3], [0, size_of::<usize>(), 0]);
        assert_eq!(now.now.returns_to(|_| None), Some(64));
        drop(call);
        assert!(!seen().unwrap().in_mpi);
        let words = [7; 2];
        // Two words behind the arguments.
        let on_stack = Origin::OnStack(words.as_ptr().addr() + 16);
        let call = thread.enter(Function(3), &words, on_stack, true, false);
        assert_eq!(seen().unwrap().now.returns_to(|_| None), Some(16));
        drop(call);
        assert_eq!(seen().unwrap().now.returns_to(|_| None), None);
        thread.ends();
        assert!(seen().is_none());
    }
}
