;; Wants the variables and folders of the machine. Traps if it gets any.
(func $run (param $target i32) (result i32)
  (call $environment (i32.const 512))
  (if (i32.load (i32.const 516)) (then unreachable))
  (call $directories (i32.const 512))
  (if (i32.load (i32.const 516)) (then unreachable))
  (call $score 'hostile' (f64.const 100) (i32.const 0) (f64.const 0))
  (call $finish))
