;; Measures a number where a word is due.
(func $run (param $target i32) (result i32)
  (call $measure 'words' (i32.const 0) '' (i32.const 0) (i64.reinterpret_f64 (f64.const 1)) (i32.const 0))
  (call $finish))
