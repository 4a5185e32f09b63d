;; Sends parameters that are not one JSON value.
(func $run (param $target i32) (result i32)
  (call $primary (local.get $target) (i32.const 512))
  (call $request (i32.load (i32.const 516)) 'ping' (i32.const 1) '{} {}' (i32.const 0) (i32.const 0) (i32.const 512))
  (call $finish))
