;; Asks for a match that a careless engine never ends.
(func $run (param $target i32) (result i32)
  (call $matches '^(?=(a+)+b)(a|aa)+c$' 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaad'
    (i32.const 1) (i32.const 512))
  (call $score 'hostile' (f64.const 100) (i32.const 0) (f64.const 0))
  (call $finish))
