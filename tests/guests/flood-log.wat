;; Logs 50,000 lines of 4,000 bytes, and is otherwise well.
(func $run (param $target i32) (result i32)
  (local $left i32)
  (local.set $left (i32.const 50000))
  (loop $more
    (call $log (i32.const 1) (i32.const 0) (i32.const 4000))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $more (local.get $left)))
  (call $score 'hostile' (f64.const 100) (i32.const 0) (f64.const 0))
  (call $finish))
