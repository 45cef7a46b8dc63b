//! What does an entry point do first? The fast path of the only thread that calls MPI, in assembly: two
//! tests, two counts, and the gate around the call. `benches/results/measurements.md` says how many instructions that is.
//!
//! The compiler would emit more instructions: it loads each number into a register before testing it, and
//! likewise each argument on the stack.

#[cfg(target_arch = "x86_64")]
use crate::calls::now::is_kept;
#[cfg(target_arch = "x86_64")]
use crate::calls::requests::StartArguments;

/// The instructions of an entrance after it has counted the call: the gate, the arguments on the stack once more,
/// and the call of `$next`.
#[cfg(target_arch = "x86_64")]
macro_rules! forwards {
    ($next:literal, $after:expr) => {
        concat!(
            // With the function that is called.
            "mov dword ptr [rip + {gate}], {inside}\n",
            ".if {padded}\n",
            "push r11\n",
            ".cfi_adjust_cfa_offset 8\n",
            ".endif\n",
            // The last one first: each is as far above the top of the stack as the one before.
            ".rept {words}\n",
            "push qword ptr [rsp + 8 * {pushed}]\n",
            ".cfi_adjust_cfa_offset 8\n",
            ".endr\n",
            "call ",
            $next,
            "\n",
            $after,
            "mov byte ptr [rip + {gate}], {open}\n",
            "add rsp, 8 * {pushed}\n",
            ".cfi_adjust_cfa_offset -8 * {pushed}\n",
            "ret",
        )
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use forwards;

/// How many of so many arguments are on the stack, one word each (System V ABI for x86-64, 3.2.3), and how many
/// words are pushed for them: the stack must be aligned to two words at a call, before the return address is pushed.
#[cfg(target_arch = "x86_64")]
pub(super) const fn stack(arguments: usize) -> (usize, usize) {
    let words = arguments.saturating_sub(6);
    (words, words + (words + 1) % 2)
}

/// The instructions that leave for the keeper where a call comes from and for whom it waits.
#[cfg(target_arch = "x86_64")]
macro_rules! leaves_now {
    () => {
        concat!(
            "mov qword ptr [rip + {now}], rsp\n",
            ".if {kept} & 1\nmov qword ptr [rip + {now} + {first}], rdi\n.endif\n",
            ".if {kept} & 2\nmov qword ptr [rip + {now} + {first} + 8], rsi\n.endif\n",
            ".if {kept} & 4\nmov qword ptr [rip + {now} + {first} + 16], rdx\n.endif\n",
            ".if {kept} & 8\nmov qword ptr [rip + {now} + {first} + 24], rcx\n.endif\n",
            ".if {kept} & 16\nmov qword ptr [rip + {now} + {first} + 32], r8\n.endif\n",
            ".if {kept} & 32\nmov qword ptr [rip + {now} + {first} + 40], r9\n.endif",
        )
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use leaves_now;

/// The instructions that note an operation in the ring of [`requests`](crate::calls::requests), if the function starts one.
/// `$arguments`: `values`, or `addresses` of them as in Fortran.
#[cfg(target_arch = "x86_64")]
macro_rules! notes_operation {
    ($arguments:ident) => {
        concat!(
            ".if {starts}\n",
            "mov r10, qword ptr [rip + {slot}]\n",
            // Its address in both languages.
            $crate::entry::entrance::argument_to_slot!("request", "{in_request}", values),
            $crate::entry::entrance::argument_to_slot!("peer", "{in_peer}", $arguments),
            $crate::entry::entrance::argument_to_slot!("tag", "{in_tag}", $arguments),
            $crate::entry::entrance::argument_to_slot!("comm", "{in_comm}", $arguments),
            "mov qword ptr [r10 + {in_kind}], {kind}\n",
            ".endif",
        )
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use notes_operation;

/// The instructions that store an argument in the slot at r10; none if its position is above 15.
#[cfg(target_arch = "x86_64")]
macro_rules! argument_to_slot {
    ($position:literal, $place:literal, values) => {
        $crate::entry::entrance::with_argument!(
            $position,
            concat!("mov qword ptr [r10 + ", $place, "], "),
            "\n"
        )
    };
    ($position:literal, $place:literal, addresses) => {
        $crate::entry::entrance::with_argument!(
            $position,
            "mov r11d, dword ptr [",
            concat!("]\nmov qword ptr [r10 + ", $place, "], r11\n")
        )
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use argument_to_slot;

/// An instruction with the register that an argument is in, between `$before` and `$after`; one on the stack is loaded.
#[cfg(target_arch = "x86_64")]
macro_rules! with_argument {
    ($position:literal, $before:expr, $after:expr) => {
        concat!(
            $crate::entry::entrance::with_argument!("0", "rdi", $position, $before, $after),
            $crate::entry::entrance::with_argument!("1", "rsi", $position, $before, $after),
            $crate::entry::entrance::with_argument!("2", "rdx", $position, $before, $after),
            $crate::entry::entrance::with_argument!("3", "rcx", $position, $before, $after),
            $crate::entry::entrance::with_argument!("4", "r8", $position, $before, $after),
            $crate::entry::entrance::with_argument!("5", "r9", $position, $before, $after),
            ".if {",
            $position,
            "} > 5 && {",
            $position,
            "} < 16\nmov r11, qword ptr [rsp + 8 * ({",
            $position,
            "} - 5)]\n",
            $before,
            "r11",
            $after,
            ".endif\n",
        )
    };
    ($at:literal, $register:literal, $position:literal, $before:expr, $after:expr) => {
        concat!(".if {", $position, "} == ", $at, "\n", $before, $register, $after, ".endif\n")
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use with_argument;

/// The instructions after the call: the low half of the handle is noted. `$unless`: what skips them if the
/// call failed.
#[cfg(target_arch = "x86_64")]
macro_rules! notes_handle {
    ($unless:literal) => {
        concat!(
            ".if {starts}\n",
            $unless,
            "mov r10, qword ptr [rip + {slot}]\n",
            "mov r11, qword ptr [r10 + {in_request}]\n",
            "mov r11d, dword ptr [r11]\n",
            "mov qword ptr [r10 + {in_handle}], r11\n",
            "mov r11, qword ptr [r10 + {in_next}]\n",
            "mov qword ptr [rip + {slot}], r11\n",
            "5:\n",
            ".endif\n",
        )
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use notes_handle;

/// A position that no argument has.
#[cfg(target_arch = "x86_64")]
const NOWHERE: usize = 16;

/// The positions of the request, the peer, the tag and the communicator of a function that starts an operation, and whether
/// it does.
#[cfg(target_arch = "x86_64")]
pub(super) const fn started(function: &str, names: &[&str]) -> (usize, [usize; 4]) {
    const fn or_nowhere(position: Option<usize>) -> usize {
        match position {
            Some(position) => position,
            None => NOWHERE,
        }
    }
    match StartArguments::new(function, names) {
        None => (0, [NOWHERE; 4]),
        Some(StartArguments { request, peer, tag, comm }) => {
            (1, [request, or_nowhere(peer), or_nowhere(tag), or_nowhere(comm)])
        }
    }
}

/// A bit for each of the first six arguments that is left there.
#[cfg(target_arch = "x86_64")]
pub(super) const fn kept(function: &str, names: &[&str]) -> usize {
    let (mut bits, mut at) = (0, 0);
    while at < 6 {
        if is_kept(function, names, at) {
            bits |= 1 << at;
        }
        at += 1;
    }
    bits
}

/// A function that counts the call and forwards it to the next definition or, after counting it, continues as
/// `$counted` if that is wanted. For one of several threads it continues as `threaded`, and while calls are recorded as `recorded`;
/// when the call is due for timing, nested or watched, it continues as `other`. All have the same arguments.
#[cfg(target_arch = "x86_64")]
macro_rules! entrance {
    (
        $(#[$attribute:meta])* fn $name:ident ( $($arg:ident : $type:ty),* ) of $function:expr
        $(, then $counted:ident if $continues:expr)?
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        extern "C-unwind" fn $name($($arg: $type),*) -> Int {
            const PLACES: (usize, usize) = $crate::calls::ledger::Ledger::places($function);
            const STACK: (usize, usize) =
                $crate::entry::entrance::stack(<[&str]>::len(&[$(stringify!($arg)),*]));
            const STARTED: (usize, [usize; 4]) =
                $crate::entry::entrance::started($crate::mpi::functions::name($function), &[$(stringify!($arg)),*]);
            std::arch::naked_asm!(
                ".cfi_startproc",
                // The address of that function as a 4-byte offset from its own position.
                ".cfi_personality 0x1b, {unwound}",
                "cmp byte ptr [rip + {gate}], {open}",
                "jne 3f",
                "sub qword ptr [rip + {ledger} + {left}], 1",
                "jb 2f",
                // Before the call, so that one that is left by an exception is counted, too.
                "inc qword ptr [rip + {ledger} + {calls}]",
                $crate::entry::entrance::leaves_now!(),
                $crate::entry::entrance::notes_operation!(values),
                $(concat!(".if !{forwards}\njmp {", stringify!($counted), "}\n.endif"),)?
                ".if {forwards}",
                $crate::entry::entrance::forwards!(
                    "qword ptr [rip + {entry} + {next}]",
                    $crate::entry::entrance::notes_handle!("test eax, eax\njne 5f\n")
                ),
                ".endif",
                "2:",
                "mov qword ptr [rip + {ledger} + {left}], 0",
                "jmp {other}",
                "3:",
                "cmp byte ptr [rip + {gate}], {threaded}",
                "jne 4f",
                // r11 holds no argument. The variable is that of `crate::calls::thread`.
                "mov r11, qword ptr [rip + gyan_thread@GOTTPOFF]",
                "mov qword ptr fs:[r11 + {stack}], rsp",
                "jmp {thread}",
                "4:",
                "cmp byte ptr [rip + {gate}], {in_fortran}",
                "jne 6f",
                "jmp qword ptr [rip + {entry} + {next}]",
                "6:",
                "cmp byte ptr [rip + {gate}], {recording}",
                "jne {other}",
                // Then a function that deals with receives has to know where it returns to.
                "cmp byte ptr [rip + {watching}], 0",
                "jne {other}",
                $crate::entry::entrance::leaves_now!(),
                "jmp {recorded}",
                ".cfi_endproc",
                unwound = sym $crate::calls::gate::unwound,
                gate = sym $crate::calls::gate::GATE,
                open = const $crate::calls::gate::OPEN,
                threaded = const $crate::calls::gate::THREADED,
                recording = const $crate::calls::gate::RECORDED,
                watching = sym $crate::observe::receives::ON,
                inside = const $crate::calls::gate::entered($crate::calls::gate::INSIDE, $function),
                slot = sym $crate::calls::requests::NEXT,
                starts = const STARTED.0,
                request = const STARTED.1[0],
                peer = const STARTED.1[1],
                tag = const STARTED.1[2],
                comm = const STARTED.1[3],
                kind = const $crate::calls::requests::kind($function, false),
                in_request = const std::mem::offset_of!($crate::calls::requests::OperationSlot, request),
                in_handle = const std::mem::offset_of!($crate::calls::requests::OperationSlot, handle),
                in_peer = const std::mem::offset_of!($crate::calls::requests::OperationSlot, peer),
                in_tag = const std::mem::offset_of!($crate::calls::requests::OperationSlot, tag),
                in_comm = const std::mem::offset_of!($crate::calls::requests::OperationSlot, comm),
                in_kind = const std::mem::offset_of!($crate::calls::requests::OperationSlot, kind),
                in_next = const std::mem::offset_of!($crate::calls::requests::OperationSlot, next),
                now = sym $crate::calls::now::NOW,
                first = const $crate::calls::now::FIRST_WORD,
                kept = const $crate::entry::entrance::kept($crate::mpi::functions::name($function), &[$(stringify!($arg)),*]),
                in_fortran = const $crate::calls::gate::INSIDE_FORTRAN,
                ledger = sym $crate::calls::ledger::ALONE,
                calls = const PLACES.0,
                left = const PLACES.1,
                $($counted = sym $counted,)?
                forwards = const !(false $(|| $continues)?) as usize,
                padded = const STACK.1 - STACK.0,
                words = const STACK.0,
                pushed = const STACK.1,
                entry = sym ENTRY,
                next = const std::mem::offset_of!(Entry, next) + Next::CALLABLE,
                stack = const std::mem::offset_of!($crate::calls::thread::Thread, stack),
                thread = sym threaded::<false>,
                recorded = sym recorded,
                other = sym other,
            )
        }
    };
}

/// The same for a routine of Fortran that moves no bytes. For any call but one that is only counted, while one
/// thread calls MPI, it continues as `other`.
#[cfg(all(target_arch = "x86_64", not(feature = "static")))]
macro_rules! fortran_entrance {
    (
        $(#[$attribute:meta])* fn $name:ident ( $($arg:ident : $type:ty),* )
        of $function:expr, $spelling:expr
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        extern "C-unwind" fn $name($($arg: $type),*) {
            const PLACES: (usize, usize) = $crate::calls::ledger::Ledger::places($function);
            const STACK: (usize, usize) =
                $crate::entry::entrance::stack(<[&str]>::len(&[$(stringify!($arg)),*]));
            const STARTED: (usize, [usize; 4]) =
                $crate::entry::entrance::started($crate::mpi::functions::name($function), &[$(stringify!($arg)),*]);
            // rax holds no argument.
            std::arch::naked_asm!(
                ".cfi_startproc",
                ".cfi_personality 0x1b, {unwound}",
                "mov rax, qword ptr [rip + {next} + {place}]",
                "test rax, rax",
                "je {other}",
                "cmp byte ptr [rip + {gate}], {open}",
                "jne 3f",
                "sub qword ptr [rip + {ledger} + {left}], 1",
                "jb 2f",
                "inc qword ptr [rip + {ledger} + {calls}]",
                $crate::entry::entrance::leaves_now!(),
                $crate::entry::entrance::notes_operation!(addresses),
                $crate::entry::entrance::forwards!("rax", $crate::entry::entrance::notes_handle!("")),
                "2:",
                "mov qword ptr [rip + {ledger} + {left}], 0",
                "jmp {other}",
                "3:",
                "cmp byte ptr [rip + {gate}], {in_fortran}",
                "jne {other}",
                "jmp rax",
                ".cfi_endproc",
                unwound = sym $crate::calls::gate::unwound,
                gate = sym $crate::calls::gate::GATE,
                open = const $crate::calls::gate::OPEN,
                in_fortran = const $crate::calls::gate::INSIDE_FORTRAN,
                inside = const $crate::calls::gate::entered(
                    $crate::calls::gate::INSIDE_FORTRAN,
                    $function,
                ),
                slot = sym $crate::calls::requests::NEXT,
                starts = const STARTED.0,
                request = const STARTED.1[0],
                peer = const STARTED.1[1],
                tag = const STARTED.1[2],
                comm = const STARTED.1[3],
                kind = const $crate::calls::requests::kind($function, true),
                in_request = const std::mem::offset_of!($crate::calls::requests::OperationSlot, request),
                in_handle = const std::mem::offset_of!($crate::calls::requests::OperationSlot, handle),
                in_peer = const std::mem::offset_of!($crate::calls::requests::OperationSlot, peer),
                in_tag = const std::mem::offset_of!($crate::calls::requests::OperationSlot, tag),
                in_comm = const std::mem::offset_of!($crate::calls::requests::OperationSlot, comm),
                in_kind = const std::mem::offset_of!($crate::calls::requests::OperationSlot, kind),
                in_next = const std::mem::offset_of!($crate::calls::requests::OperationSlot, next),
                now = sym $crate::calls::now::NOW,
                first = const $crate::calls::now::FIRST_WORD,
                kept = const $crate::entry::entrance::kept($crate::mpi::functions::name($function), &[$(stringify!($arg)),*]),
                ledger = sym $crate::calls::ledger::ALONE,
                calls = const PLACES.0,
                left = const PLACES.1,
                padded = const STACK.1 - STACK.0,
                words = const STACK.0,
                pushed = const STACK.1,
                next = sym $crate::entry::spelling::NEXT,
                place = const $crate::entry::spelling::place($function, $spelling),
                other = sym other,
            )
        }
    };
}

/// A routine of Fortran that is not counted on the way of [`fortran_entrance`]: one that is called by another, as
/// Open MPI's `ompi_*_f` are by its `mpi_f08`, continues as the next definition, any other as `other`.
#[cfg(all(target_arch = "x86_64", not(feature = "static")))]
macro_rules! nested_entrance {
    (
        $(#[$attribute:meta])* fn $name:ident ( $($arg:ident : $type:ty),* )
        of $function:expr, $spelling:expr
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        extern "C-unwind" fn $name($($arg: $type),*) {
            std::arch::naked_asm!(
                "cmp byte ptr [rip + {gate}], {inside}",
                "jne {other}",
                "mov rax, qword ptr [rip + {next} + {place}]",
                "test rax, rax",
                "je {other}",
                "jmp rax",
                gate = sym $crate::calls::gate::GATE,
                inside = const $crate::calls::gate::INSIDE_FORTRAN,
                next = sym $crate::entry::spelling::NEXT,
                place = const $crate::entry::spelling::place($function, $spelling),
                other = sym other,
            )
        }
    };
}

#[cfg(all(not(target_arch = "x86_64"), not(feature = "static")))]
macro_rules! fortran_entrance {
    (
        $(#[$attribute:meta])* fn $name:ident ( $($arg:ident : $type:ty),* )
        of $function:expr, $spelling:expr
    ) => {
        $(#[$attribute])*
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        extern "C-unwind" fn $name($($arg: $type),*) {
            other($($arg),*);
        }
    };
}
#[cfg(all(not(target_arch = "x86_64"), not(feature = "static")))]
use fortran_entrance as nested_entrance;

#[cfg(not(feature = "static"))]
pub(super) use {fortran_entrance, nested_entrance};

#[cfg(not(target_arch = "x86_64"))]
macro_rules! entrance {
    (
        $(#[$attribute:meta])* fn $name:ident ( $($arg:ident : $type:ty),* ) of $function:expr
        $(, then $counted:ident)?
    ) => {
        $(#[$attribute])*
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::similar_names)]
        extern "C-unwind" fn $name($($arg: $type),*) -> Int {
            other($($arg),*)
        }
    };
}

pub(super) use entrance;

#[cfg(test)]
#[allow(clippy::many_single_char_names, clippy::too_many_arguments)]
mod tests {
    use std::ffi::c_void;
    use std::mem;
    use std::panic::{catch_unwind, resume_unwind};

    use super::super::c::{entry, fast, waits_in};
    use super::super::call::{Effect, Entry, words_from_fortran};
    use super::super::words::as_words;
    use crate::calls::gate::{self, Fast};
    use crate::calls::ledger::{self, NO_FUNCTION};
    #[cfg(target_arch = "x86_64")]
    use crate::calls::now::ThreadNowSeen;
    use crate::calls::thread;
    use crate::mpi::functions::{Argument, Int, Name, receives, samples, waits};
    use crate::mpi::handles::{Arguments, Language};
    use crate::observe::receives;
    use crate::sys::fork::in_a_copy;
    #[cfg(target_arch = "x86_64")]
    use crate::sys::memory::words_from;
    use crate::sys::symbols::{Address, Next, c_name};

    /// An entry point `entered`, none of whose calls is timed, and its helpers.
    macro_rules! entered {
        ($name:ident ($($arg:ident),*)) => {
            fast! { NO_FUNCTION $name [] ($($arg: Int),*) |_| {}; Effect::Nothing }

            extern "C-unwind" fn other($($arg: Int),*) -> Int {
                called::<false>($($arg),*)
            }

            entrance! { fn entered($($arg: Int),*) of NO_FUNCTION }
        };
    }

    /// Checks that these arguments arrive, and that a call that throws is counted and left.
    macro_rules! passes {
        ($threaded:literal; $($arg:ident $value:literal)*) => {{
            entered! { nowhere ($($arg),*) }

            extern "C-unwind" fn arrives($($arg: Int),*) -> Int {
                assert!(!is_in_program($threaded));
                assert_eq!([$($arg),*], [$($value),*]);
                0
            }

            extern "C-unwind" fn throws($(_: type_of!($arg)),*) -> Int {
                // This calls no hook, which would print the stack.
                resume_unwind(Box::new("as an exception would"))
            }

            let lines = in_a_copy(|out| {
                begin($threaded);
                ENTRY.next.is_at(Address::new(arrives as *mut _).unwrap());
                let result = entered($($value),*);
                ENTRY.next.is_at(Address::new(throws as *mut _).unwrap());
                let thrown = catch_unwind(|| entered($($value),*)).is_err();
                let counted = gate::ledger().calls(NO_FUNCTION);
                writeln!(out, "{result} {thrown} {counted} {}", is_in_program($threaded))
            });
            assert_eq!(lines, "0 true 2 true\n");
        }};
    }

    /// Starts counting, without timing any call.
    fn begin(threaded: bool) {
        let (here, ledger) = (thread::here(), Some(ledger::leaked()));
        here.ledger.set(ledger);
        here.own.set(ledger);
        gate::open(threaded);
        gate::ledger().put_off(NO_FUNCTION);
    }

    fn is_in_program(threaded: bool) -> bool {
        if threaded { !thread::here().inside.get() } else { gate::is_alone_in_program() }
    }

    macro_rules! type_of {
        ($arg:ident) => {
            Int
        };
    }

    #[test]
    fn arguments_arrive_in_registers_and_on_the_stack_and_an_exception_leaves_the_call() {
        passes!(false; a 1);
        passes!(false; a 1 b 2 c 3 d 4 e 5 f 6);
        passes!(false; a 1 b 2 c 3 d 4 e 5 f 6 g 7);
        passes!(false; a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8);
        passes!(false; a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8 i 9 j 10 k 11);
        passes!(true; a 1);
        passes!(true; a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn where_the_call_of_a_thread_comes_from_is_known_while_it_lasts() {
        entered! { nowhere (number) }

        #[inline(never)]
        fn calls() -> Int {
            entered(7) + 1
        }

        extern "C-unwind" fn arrives(_: Int) -> Int {
            let pid = i32::try_from(std::process::id()).unwrap();
            let now = (&raw const *gate::ledger()).addr() + ledger::NOW_AT;
            let read = |at| words_from(pid, at).ok().map(|[word]| word);
            let seen = ThreadNowSeen::from_words(words_from(pid, now).unwrap(), read).unwrap();
            let begin = (calls as *const ()).addr();
            let address = seen.now.returns_to(|_| None).unwrap();
            Int::from((begin..begin + 256).contains(&address))
        }

        let lines = in_a_copy(|out| {
            begin(true);
            ENTRY.next.is_at(Address::new(arrives as *mut _).unwrap());
            writeln!(out, "{}", calls())
        });
        assert_eq!(lines, "2\n");
    }

    /// Checks that these arguments arrive on the other path, and that an exception passes through it.
    macro_rules! passes_as_words {
        ($($arg:ident $value:literal)*) => {{
            entered! { nowhere ($($arg),*) }

            extern "C-unwind" fn arrives($($arg: Int),*) -> Int {
                assert_eq!([$($arg),*], [$($value),*]);
                5
            }

            extern "C-unwind" fn throws($(_: type_of!($arg)),*) -> Int {
                resume_unwind(Box::new("as an exception would"))
            }

            let lines = in_a_copy(|out| {
                gate::close();
                ENTRY.next.is_at(Address::new(arrives as *mut _).unwrap());
                let result = entered($($value),*);
                ENTRY.next.is_at(Address::new(throws as *mut _).unwrap());
                let thrown = catch_unwind(|| entered($($value),*)).is_err();
                writeln!(out, "{result} {thrown}")
            });
            assert_eq!(lines, "5 true\n");
        }};
    }

    #[test]
    fn arguments_arrive_as_words_and_an_exception_flies_through() {
        passes_as_words!(a 1);
        passes_as_words!(a 1 b 2 c 3 d 4 e 5 f 6);
        passes_as_words!(a 1 b 2 c 3 d 4 e 5 f 6 g 7);
        passes_as_words!(a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8);
        passes_as_words!(a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8 i 9 j 10 k 11);
    }

    #[cfg(not(feature = "static"))]
    #[test]
    fn arguments_arrive_in_fortran_and_an_exception_leaves_the_call() {
        use super::super::spelling::NEXT;
        use crate::mpi::functions::info::MPI_Info_set as FUNCTION;

        // Numbers without names.
        const SPELLING: usize = 9;
        const NESTED: usize = 8;
        entered! { nowhere (number) }

        macro_rules! routine {
            ($($arg:ident)*) => {
                extern "C-unwind" fn other($(_: usize_for!($arg)),*) {
                    panic!("a call that is only counted");
                }

                fortran_entrance! { fn routine($($arg: usize),*) of FUNCTION, SPELLING }
                fortran_entrance! { fn within($($arg: usize),*) of FUNCTION, NESTED }
                nested_entrance! { fn deeper($($arg: usize),*) of FUNCTION, SPELLING }

                extern "C-unwind" fn arrives($($arg: usize),*) {
                    let next = &NEXT[FUNCTION.0][SPELLING];
                    next.is_at(Address::new(is_called as *mut _).unwrap());
                    within($($arg),*);
                }

                // By a routine that is called by a routine that is called by the program.
                extern "C-unwind" fn passes($($arg: usize),*) {
                    deeper($($arg),*);
                }

                extern "C-unwind" fn is_called($($arg: usize),*) {
                    assert_eq!([$($arg),*], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
                    // The function of C passes through, and where the call came from stays as it is.
                    assert_eq!((entered(-7), is_in_program(false)), (7, false));
                }

                extern "C-unwind" fn throws($(_: usize_for!($arg)),*) {
                    resume_unwind(Box::new("as an exception would"))
                }
            };
        }
        macro_rules! usize_for {
            ($arg:ident) => {
                usize
            };
        }
        extern "C-unwind" fn seven(number: Int) -> Int {
            -number
        }

        let lines = in_a_copy(|out| {
            routine!(a b c d e f g h i);

            begin(false);
            gate::ledger().put_off(FUNCTION);
            ENTRY.next.is_at(Address::new(seven as *mut _).unwrap());
            let next = &NEXT[FUNCTION.0][SPELLING];
            next.is_at(Address::new(arrives as *mut _).unwrap());
            NEXT[FUNCTION.0][NESTED].is_at(Address::new(passes as *mut _).unwrap());
            routine(1, 2, 3, 4, 5, 6, 7, 8, 9);
            next.is_at(Address::new(throws as *mut _).unwrap());
            let thrown = catch_unwind(|| routine(1, 2, 3, 4, 5, 6, 7, 8, 9)).is_err();
            let counted = [FUNCTION, NO_FUNCTION].map(|function| gate::ledger().calls(function));
            writeln!(out, "{thrown} {counted:?} {}", is_in_program(false))
        });
        assert_eq!(lines, "true [2, 0] true\n");
    }

    #[test]
    fn a_function_that_was_timed_only_in_fortran_is_counted_once_when_c_calls_it_first() {
        entered! { abs (number) }
        let lines = in_a_copy(|out| {
            begin(false);
            let results = [entered(-7), entered(-8)];
            writeln!(out, "{results:?} {}", gate::ledger().calls(NO_FUNCTION))
        });
        assert_eq!(lines, "[7, 8] 2\n");
    }
}
