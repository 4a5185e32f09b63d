;; Wants to connect to another machine. Traps if it may.
(func $run (param $target i32) (result i32)
  (call $create-tcp (i32.const 0) (i32.const 512))
  (if (i32.eqz (i32.load8_u (i32.const 512)))
    (then
      (call $connect-tcp (i32.load (i32.const 516)) (call $network)
        (i32.const 0) (i32.const 9) (i32.const 127) (i32.const 0) (i32.const 0) (i32.const 1)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 528))
      (if (i32.eqz (i32.load8_u (i32.const 528))) (then unreachable))))
  (call $score 'hostile' (f64.const 100) (i32.const 0) (f64.const 0))
  (call $finish))
